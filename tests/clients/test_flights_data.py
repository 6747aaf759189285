"""What the flights demo makes of its file."""

import zipfile
from datetime import date

import pytest

from clients.demo.flights_data import FLIGHTS, KEY, SCHEMA, data_file, load

HEADER = (
    '"year","month","day","dep_time","sched_dep_time","dep_delay","arr_time","sched_arr_time","arr_delay",'
    '"carrier","flight","tailnum","origin","dest","air_time","distance","hour","minute","time_hour"'
)


def archive(folder, *lines):
    path = folder / "flights.csv.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("flights.csv", "\n".join((HEADER, *lines)) + "\n")
    return path


def test_week_of_the_real_file_is_loaded():
    week = load(7)
    assert week.days == [date(2013, 1, day) for day in range(1, 8)]
    assert week.frame.height == 6099
    assert week.clashes == 0
    assert week.timetable_keys < week.frame.height
    assert set(week.frame["status"].unique()) == {"arrived", "departed", "cancelled"}
    assert data_file().name == "flights.csv.zip"


def test_reports_move_every_flight_to_its_final_state():
    day = load(1)
    rows = {tuple(row[name] for name in KEY): row for row in day.schedule().to_pylist()}
    assert {row["status"] for row in rows.values()} == {"scheduled"}
    for reports in (day.departures(), day.arrivals()):
        [table] = reports.values()
        assert table.schema == SCHEMA
        for row in table.to_pylist():
            key = tuple(row[name] for name in KEY)
            assert row["stage"] > rows[key]["stage"]
            rows[key] = row
    assert rows == {tuple(row[name] for name in KEY): row for row in day.final().to_pylist()}
    assert SCHEMA.names == [field.name for field in FLIGHTS.fields]


def test_delays_carry_times_over_midnight(tmp_path):
    path = archive(
        tmp_path,
        '2013,1,1,30,2330,60,225,110,75,"B6",1,"N1","JFK","BUF",50,301,23,30,"2013-01-02T04:00:00Z"',
        '2013,1,1,NA,800,NA,NA,1000,NA,"B6",2,NA,"JFK","BUF",NA,301,8,0,"2013-01-01T13:00:00Z"',
        '2013,1,1,805,800,5,NA,1000,NA,"B6",3,"N3","JFK","BUF",NA,301,8,0,"2013-01-01T13:00:00Z"',
    )
    by_number = {row["flight"]: row for row in load(1, path).frame.to_dicts()}
    late, cancelled, lost = by_number[1], by_number[2], by_number[3]
    assert [late[name].isoformat() for name in ("sched_dep", "dep", "sched_arr", "arr")] == [
        "2013-01-01T23:30:00",
        "2013-01-02T00:30:00",
        "2013-01-02T01:10:00",
        "2013-01-02T02:25:00",
    ]
    assert (cancelled["status"], cancelled["dep"]) == ("cancelled", None)
    assert (lost["status"], lost["arr"]) == ("departed", None)


def test_duplicate_keys_are_counted_and_the_first_row_is_kept(tmp_path):
    line = '2013,1,1,805,800,5,1005,1000,5,"B6",3,"{}","JFK","BUF",60,301,8,0,"2013-01-01T13:00:00Z"'
    found = load(1, archive(tmp_path, line.format("N1"), line.format("N2")))
    assert found.clashes == 1
    assert found.frame["tailnum"].to_list() == ["N1"]


@pytest.mark.parametrize("days", [1, 3])
def test_only_the_requested_days_are_loaded(days):
    assert len(load(days).days) == days
