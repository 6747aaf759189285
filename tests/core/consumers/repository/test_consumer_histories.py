"""Random histories of consumers, their leases, writes and cuts, held to a model of plain values after every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.consumers.repository.consumers import ConsumerStore
from app.core.consumers.values import ConsumerChange, ExpectedRevision, MaxLag
from app.features.retention.repository.feed import RetentionStore
from app.infra.db.session import Database
from app.infra.identifiers import new_id
from app.kernel.format.dataset import Changelog, Retention
from app.kernel.format.errors import HeadwaterError
from tests.support.examples import a_third_of
from tests.support.lakehouse import RULES, commit_of, definition, message, new_job
from tests.support.store_fixtures import Stores

NAMES, MEMBERS = ["c", "d"], ["a", "b"]
_NAME = st.sampled_from(NAMES)
_STEPS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 3)),
    st.tuples(st.just("write"), st.integers(1, 3)),
    st.tuples(st.just("cut"), st.none()),
    st.tuples(st.just("cut"), st.none()),
    # How far behind the head, whether it may go back, which token goes along, and how old the revision is.
    st.tuples(
        st.just("put"),
        st.tuples(
            _NAME,
            st.integers(-1, 5),
            st.booleans(),
            st.sampled_from([None, None, "now", "before"]),
            st.sampled_from([0, 0, 0, 1]),
        ),
    ),
    st.tuples(st.just("bound"), st.tuples(st.just("c"), st.just(0))),
    st.tuples(st.just("bound"), st.tuples(_NAME, st.sampled_from([None, 0, 0, 2]))),
    st.tuples(st.just("lease"), st.tuples(_NAME, st.sampled_from(MEMBERS), st.sampled_from([None, "now", "before"]))),
    st.tuples(st.just("release"), st.tuples(_NAME, st.sampled_from(["now", "before"]))),
    st.tuples(st.just("lapse"), _NAME),
    st.tuples(st.just("delete"), _NAME),
)  # fmt: skip


@dataclass(kw_only=True)
class ModelConsumer:
    """A consumer of the model. `tokens`: all that were given out, the latest last. `live`: its lease runs."""

    position: int
    revision: int = 1
    max_lag: int | None = None
    member: str | None = None
    live: bool = False
    tokens: list[str] = field(default_factory=list)

    def has_lease(self, token: str) -> bool:
        return self.member is not None and self.tokens[-1:] == [token]


class Refused(Exception):
    """What the model says no with."""


@dataclass(kw_only=True)
class World:
    """The stores, and the model of what they hold. `ends`: where commits ended; `keep`: the retention."""

    stores: Stores
    consumers: ConsumerStore
    retention: RetentionStore
    dataset: Dataset
    keep: int
    ends: list[int] = field(default_factory=lambda: [0])
    earliest: int = 0
    kept: dict[str, ModelConsumer] = field(default_factory=dict)
    # Tokens of consumers that were deleted, too.
    tokens: dict[str, list[str]] = field(default_factory=lambda: {name: ["none"] for name in NAMES})

    @classmethod
    def new(cls, stores: Stores, keep: int) -> World:
        tenant_id = stores.tenants.add_tenant(f"tenant-{new_id()}")
        changelog = Changelog(retention=Retention(changes=keep))
        table = structs.replace(definition(), changelog=changelog)
        return cls(
            stores=stores,
            consumers=ConsumerStore(stores.database),
            retention=RetentionStore(stores.database),
            dataset=stores.catalog.create(tenant_id, new_id(), table),
            keep=keep,
        )

    @property
    def place(self) -> tuple[str, str]:
        return self.dataset.tenant_id, self.dataset.id

    @property
    def head(self) -> int:
        return self.ends[-1]

    def token(self, name: str, which: str | None) -> str | None:
        """The latest token that was given out under a name, or the one before."""
        if which is None:
            return None
        found = self.tokens[name]
        return found[-1] if which == "now" else found[-2:][0]

    def run_step(self, step: str, argument: object) -> None:
        match step, argument:
            case "write", int(changes):
                self.write(changes)
            case "cut", _:
                self.cut()
            case "put", (str(name), int(behind), bool(reset), which, int(age)):
                offset = max(0, self.head - behind)
                token = self.token(name, which)
                revision = self.kept[name].revision - age if name in self.kept else None
                change = ConsumerChange(offset=offset, reset=reset, lease=token)
                expected = ExpectedRevision(revision=revision)
                self.both(
                    lambda: self.consumers.put(*self.place, name, change, expected),
                    lambda: self.put(name, offset, reset, token, revision),
                )
            case "bound", (str(name), changes) if name in self.kept:
                change = ConsumerChange(max_lag=MaxLag(changes=changes))
                kept = self.kept[name]
                self.consumers.put(*self.place, name, change, ExpectedRevision(revision=kept.revision))
                kept.max_lag, kept.revision = changes, kept.revision + 1
            case "lease", (str(name), str(member), which):
                self.lease(name, member, self.token(name, which))
            case "release", (str(name), which):
                token = str(self.token(name, which))
                self.both(
                    lambda: self.consumers.release(*self.place, name, token),
                    lambda: self.release(name, token),
                )
            case "lapse", str(name) if name in self.kept and self.kept[name].live:
                self.expire_lease(name)
            case "delete", str(name):
                self.both(
                    lambda: self.consumers.delete(*self.place, name, revision=None),
                    lambda: self.delete(name),
                )
        self.check()

    def both(self, done: Callable[[], object], modelled: Callable[[], None]) -> bool:
        """Does it, and the same in the model: both do it, or both refuse it for the same reason."""
        expected = None
        try:
            modelled()
        except Refused as refusal:
            expected = str(refusal)
        refused = None
        try:
            done()
        except HeadwaterError as error:
            refused = error.code
        assert refused == expected
        return expected is None

    def write(self, changes: int) -> None:
        self.stores.jobs.accept(self.place[0], new_job(self.dataset.id))
        [job] = self.stores.jobs.claim(*self.place, "w", RULES)
        commit = commit_of([job], [message(len(self.ends), changes=changes)], read_version=len(self.ends) - 1)
        self.stores.timeline.publish_one(self.place[0], commit)
        self.ends.append(self.head + changes)

    def cut(self) -> None:
        fences = [
            each.position
            for each in self.kept.values()
            if each.position >= self.earliest
            and (each.max_lag is None or self.head - each.position <= each.max_lag)
        ]
        end = min([self.head - self.keep, *fences])
        beginning = max([self.earliest, *(each for each in self.ends if each <= end)])
        cut = self.retention.cut(*self.place, follower_lag_seconds=1.0)
        assert cut == beginning - self.earliest
        self.earliest = beginning
        self.retention.expire_files(*self.place, 1)

    def put(self, name: str, offset: int, reset: bool, token: str | None, revision: int | None) -> None:
        kept = self.kept.get(name)
        if token is not None and (kept is None or not kept.has_lease(token)):
            raise Refused("lease-lost")
        if kept is not None and revision != kept.revision:
            raise Refused("precondition-failed")
        if kept is not None and token is None and kept.live:
            raise Refused("consumer-leased")
        if offset > self.head:
            raise Refused("offset-ahead")
        if offset < self.earliest:
            raise Refused("offset-expired")
        if kept is None:
            self.kept[name] = ModelConsumer(position=offset)
            return
        if offset < kept.position and not reset:
            raise Refused("invalid-request")
        kept.position, kept.revision = offset, kept.revision + 1
        if token is None:
            kept.member, kept.live = None, False

    def lease(self, name: str, member: str, token: str | None) -> None:
        kept = self.kept.get(name)

        def modelled() -> None:
            if kept is None:
                raise Refused("not-found")
            if token is not None and not kept.has_lease(token):
                raise Refused("lease-lost")
            if kept.live and kept.member != member:
                raise Refused("consumer-leased")
            kept.member, kept.live = member, True

        tokens_given: list[str] = []
        done = self.both(
            lambda: tokens_given.append(self.consumers.lease(*self.place, name, member, 600, token).token),
            modelled,
        )
        if done and token is None:
            assert tokens_given[0] not in self.tokens[name], "a token is given out once"
            self.tokens[name].append(tokens_given[0])
            self.kept[name].tokens.append(tokens_given[0])
        elif done:
            assert tokens_given == [token]

    def release(self, name: str, token: str) -> None:
        kept = self.kept.get(name)
        if kept is None:
            raise Refused("not-found")
        if kept.member is None and kept.tokens[-1:] == [token]:
            return
        if not kept.has_lease(token):
            raise Refused("lease-lost")
        kept.member, kept.live = None, False

    def expire_lease(self, name: str) -> None:
        with self.stores.database.tenant(self.place[0]) as connection:
            connection.execute(
                text("UPDATE consumers SET lease_until = clock_timestamp() WHERE name = :name"),
                {"name": name},
            )
        self.kept[name].live = False

    def delete(self, name: str) -> None:
        if self.kept.pop(name, None) is None:
            raise Refused("not-found")

    def check(self) -> None:
        """The stores hold what the model holds, and the feed can be read from where it begins."""
        standings = self.consumers.list(*self.place, page_size=10, page_token=None).items
        found = {
            each.consumer.name: (
                each.consumer.position,
                each.consumer.revision,
                each.consumer.max_lag_rows,
                each.consumer.member,
                each.lease_seconds > 0,
                each.expired,
                each.behind_changes,
                each.behind_seconds > 0,
            )
            for each in standings
        }
        assert found == {
            name: (
                kept.position,
                kept.revision,
                kept.max_lag,
                kept.member,
                kept.live,
                kept.position < self.earliest,
                self.head - kept.position,
                self.head > kept.position,
            )
            for name, kept in self.kept.items()
        }
        at = self.earliest
        for segment in self.stores.changelog.segments(*self.place, self.earliest, self.head):
            assert segment.first_offset == at
            at = segment.end_offset
        assert at == self.head


@settings(
    max_examples=a_third_of(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(keep=st.integers(1, 4), steps=st.lists(_STEPS, min_size=12, max_size=30))
def test_consumers_leases_and_expiry_equal_the_model(
    database: Database, administration: Database, keep: int, steps: list[tuple[str, object]]
) -> None:
    world = World.new(Stores.on(database, administration), keep)
    world.run_step("put", ("c", 0, False, None, 0))
    for step, argument in steps:
        world.run_step(step, argument)
