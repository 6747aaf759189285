"""Reads the input of a write as staged rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.core.catalog.ports import DatasetLookup
from app.core.feature.stagers import InputStager, StagedInput
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.values import Job
from app.features.writes.engine import WriteEngine
from app.kernel.commit.write_options import OnError
from app.kernel.format.paths import dataset_prefix, decoded_prefix, quarantine_prefix


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadInput:
    """Returns rows that the API has staged unchanged, decodes raw bodies, and has `stagers` make the other rows."""

    catalog: DatasetLookup
    engine: WriteEngine
    stagers: Mapping[JobKind, InputStager]

    def run(self, job: Job, *, number: int, tag: str) -> StagedInput:
        """The staged input of a write. `number`: differs for each read of a write, since it is part of the file names.

        Raises what `InputStager.stage` and `WriteEngine.decode` raise.
        """
        place = dataset_prefix(job.tenant_id, job.dataset_id)
        prefix = f"{decoded_prefix(place, job.id, job.epoch)}-{number}"
        stager = self.stagers.get(job.write.kind)
        if stager is not None:
            return stager.stage(job, prefix, tag)
        raw, options = job.write.raw, job.write.options
        if raw is None:
            return StagedInput(
                job=job,
                files=job.write.staged,
                quarantine_files=job.write.quarantined,
                ignored_fields=job.write.ignored_fields or (),
            )
        bad_records = f"{quarantine_prefix(place, job.id, job.epoch)}-{number}"
        decoding = self.engine.decode(
            raw.parts,
            self.catalog.get(job.tenant_id, job.dataset_id).definition,
            job.write.operation,
            prefix=prefix,
            options=options,
            quarantine=bad_records if options.on_error is OnError.QUARANTINE else None,
            tag=tag,
        )
        return StagedInput(
            job=job,
            files=decoding.files,
            quarantine_files=decoding.quarantine_files,
            ignored_fields=decoding.ignored_fields,
            definition=decoding.definition,
        )
