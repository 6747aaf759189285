"""Consumers: named positions in the feed of a dataset, which keep the changes after them from being cut.

A reader commits its own position through `handlers.py`, under If-Match, and may lease the consumer so that only one
member of a group commits. The positions of followers (webhooks, exports, views) are moved by workers instead.

`values.py` has the rules of a commit, `repository/consumers.py` applies them in one transaction each. `followers.py`
has the values that followers share, `repository/followers.py` finds those that are due, and `service.py` has each
of them do its next piece of work. `schemas.py` has the JSON.

    PUT /datasets/orders/consumers/warehouse        {"offset": "earliest"}
    PUT /datasets/orders/consumers/warehouse        {"offset": 145}   If-Match: "1"
"""
