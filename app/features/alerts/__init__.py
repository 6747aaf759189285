"""The health of the whole service, for operators: what works, and what needs their attention.

`GET /health/service` checks the database, the register of processes, disks, the storage and Redis. A process is ready
whatever it shows (`app.process.readiness`).

    curl $URL/health/service -H "$AUTH"        {"state": "failing", "checks": {"workers": {"ok": false, …}}}
"""
