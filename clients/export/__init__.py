"""The export of all of a tenant's data to a folder, through the public API: see docs/tenancy.md.

Each dataset is downloaded to `partial/NAME` and moved to `datasets/NAME` once it is complete, so what is in `datasets`
is complete, and an interrupted export continues.
"""
