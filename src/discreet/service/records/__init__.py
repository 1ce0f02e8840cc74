"""What all workers and hosts of a gateway share beside the ledger: keys, jobs and misses."""

from discreet.service.records.api_keys import ApiKey
from discreet.service.records.jobs import GatewayJob, JobState
from discreet.service.records.records import Records

__all__ = ["ApiKey", "GatewayJob", "JobState", "Records"]
