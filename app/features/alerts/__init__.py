"""The health of the whole service, for operators: what works, and the alerts about what needs their attention.

`declared.py` declares alerts as data. The process that gathers samples (`app.features.monitoring`) evaluates them and
stores their states. They are shown by `GET /health/service`, beside the checks of processes and servers, are sent as
events to `HEADWATER_ALERT_URL`, and are rules of Prometheus (`monitoring/alerts.yml`).

    {"type": "alert.fired", "data": {"alert": "disk-low", "detail": "process=api-1: 0.08", …}}
"""
