"""Whether a deployment has what the service needs: versions, roles, row level security, clocks, storage, Spark.

`headwater doctor` prints the result of every check, `headwater init` reports faults of the database, and the API and
workers log what is wrong when they start. Each check takes a few seconds at most, and changes nothing but a small file
of its own in storage:

    for check in examine(settings, Examined.DEPLOYMENT):
        print(check.name, check.verdict, check.detail)
"""

from app.process.doctor.examine import Examined, examine, log_faults
from app.process.doctor.values import Diagnosis, Verdict

__all__ = ["Diagnosis", "Examined", "Verdict", "examine", "log_faults"]
