"""The runner: its threads take turns, and keep to no dataset."""

from __future__ import annotations

import threading
from collections import Counter

from workers.jobs.runner import Runner


class Groups:
    """A use case: this number of groups of each dataset. Each run is held until it is let go."""

    def __init__(self, groups: dict[tuple[str, str], int]) -> None:
        self.left = Counter(groups)
        self.ran: list[str] = []
        self.running = 0
        self.most = 0
        self.lock = threading.Lock()
        self.go = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self.ended = threading.Event()

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        with self.lock:
            if not self.left[tenant_id, dataset_id]:
                return False
            self.left[tenant_id, dataset_id] -= 1
            self.running += 1
            self.most = max(self.most, self.running)
            self.ran.append(tenant_id)
        self.began.release()
        assert self.go.acquire(timeout=10)
        with self.lock:
            self.running -= 1
            if not +self.left and not self.running:
                self.ended.set()
        if tenant_id == "failing":
            raise ZeroDivisionError("a bug")
        return True


def runner_of(use_case: Groups, *, threads: int, per_dataset_max: int = 1) -> Runner:
    return Runner(use_case, name="test", threads=threads, per_dataset_max=per_dataset_max)


def test_thread_leaves_a_busy_dataset_to_another_tenant_after_one_group() -> None:
    groups = {("noisy", str(number)): 50 for number in range(4)}
    use_case = Groups({**groups, ("quiet", "only"): 1, ("other", "only"): 1})
    runner = runner_of(use_case, threads=2)
    for number in range(4):
        runner.wake("noisy", str(number))
    for _ in range(2):
        assert use_case.began.acquire(timeout=10)
    # The thread that no single tenant gets, and then the next one that becomes free.
    runner.wake("quiet", "only")
    assert use_case.began.acquire(timeout=10)
    assert use_case.ran == ["noisy", "noisy", "quiet"]
    runner.wake("other", "only")
    use_case.go.release()
    assert use_case.began.acquire(timeout=10)
    assert use_case.ran == ["noisy", "noisy", "quiet", "other"]
    for _ in range(300):
        use_case.go.release()
    assert use_case.ended.wait(10)
    assert runner.stop(10)
    assert use_case.most == 3


def test_dataset_is_run_by_at_most_its_number_of_threads() -> None:
    use_case = Groups({("tenant", "dataset"): 8})
    runner = runner_of(use_case, threads=4, per_dataset_max=2)
    for _ in range(9):
        runner.wake("tenant", "dataset")
    for _ in range(8):
        use_case.go.release()
    assert use_case.ended.wait(10)
    assert runner.stop(10)
    assert use_case.most <= 2


def test_failed_work_ends_its_turn_and_no_thread() -> None:
    use_case = Groups({("failing", "dataset"): 2, ("other", "dataset"): 2})
    for _ in range(4):
        use_case.go.release()
    runner = runner_of(use_case, threads=1)
    runner.wake("failing", "dataset")
    runner.wake("other", "dataset")
    for _ in range(3):
        assert use_case.began.acquire(timeout=10)
    runner.wake("failing", "dataset")
    assert use_case.ended.wait(10)
    assert runner.stop(10)


def test_stopped_runner_starts_no_more_work() -> None:
    use_case = Groups({("tenant", str(number)): 5 for number in range(3)})
    runner = runner_of(use_case, threads=1)
    for number in range(3):
        runner.wake("tenant", str(number))
    assert use_case.began.acquire(timeout=10)
    assert not runner.stop(0.01), "it has not ended"
    use_case.go.release()
    assert runner.stop(10)
    runner.wake("tenant", "0")
    assert len(use_case.ran) == 1


def test_runner_without_spare_threads_runs_one_piece_at_a_time() -> None:
    use_case = Groups({("one", "a"): 2, ("two", "b"): 2})
    runner = Runner(use_case, name="test", threads=1, spare_threads=0, per_dataset_max=1)
    for key in (("one", "a"), ("two", "b")):
        runner.wake(*key)
    assert use_case.began.acquire(timeout=10)
    assert runner.idle_seconds() == 0
    use_case.go.release(4)
    assert use_case.ended.wait(10)
    assert (use_case.most, use_case.ran) == (1, ["one", "two", "one", "two"])
    assert runner.stop(10)
    assert runner.idle_seconds() > 0
