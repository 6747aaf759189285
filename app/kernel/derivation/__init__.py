"""Rows that SQL computes: the request to the engine, and its interface.

`request.py`: SQL, its inputs, and how its result is used. An input is the rows of a dataset at one version, a range of
its changes, or staged rows of a write. `engine.py`: what runs a request and stages its result.

Views and the transforms of sources make requests (`app/features/views/service/refresh.py`,
`app/features/sources/transforms.py`); `workers/engine/derive` runs them.
"""
