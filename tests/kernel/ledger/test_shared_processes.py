"""Replicas in processes of their own: races, kills, a server that is restarted."""

from __future__ import annotations

import os
import signal

import pytest
from tests.kernel.ledger.replicas import Race, check, homes_of
from tests.kernel.ledger.stores import new_place, sql
from tests.postgres_server import running
from tests.waiting import come


@pytest.mark.parametrize("number", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_race_for_the_last_credits(address, tmp_path, monkeypatch, number):
    cap = 60
    replicas = homes_of(address, tmp_path, number, cap)
    homes = [replica.home for replica in replicas]
    race = Race(address, homes, tmp_path, rounds=40, threads=4, cap=cap)
    race.finish()
    released = race.released()
    kinds = check(address, released, replicas[0], cap)
    assert kinds["charge"] == len(released) == cap  # exactly
    assert len([notes for notes in race.notes if notes.exists()]) == number


@pytest.mark.slow
def test_a_replica_killed_under_load_takes_nothing_along(address, tmp_path, monkeypatch):
    cap = 10**6
    replicas = homes_of(address, tmp_path, 3, cap)
    homes = [replica.home for replica in replicas]
    race = Race(address, homes, tmp_path, rounds=30, threads=4, cap=cap)
    come(lambda: race.told(1) >= 10)  # of 120: it is in the middle
    os.kill(race.processes[1].pid, signal.SIGKILL)
    race.finish(killed=[1])
    released = race.released()
    check(address, released, replicas[0], cap)
    check(address, released, replicas[1], cap)  # and the killed one opens again
    assert sum(name.startswith(("r0-", "r2-")) for name in released) == 2 * 4 * 20


@pytest.mark.slow
@pytest.mark.parametrize("how", ["halt", pytest.param("backends", marks=pytest.mark.slow)])
def test_a_server_restarted_under_load_loses_nothing(tmp_path, monkeypatch, how):
    pytest.importorskip("psycopg")
    cap = 10**6
    with running() as server:
        address = new_place(server)
        replicas = homes_of(address, tmp_path, 2, cap)
        homes = [replica.home for replica in replicas]
        race = Race(address, homes, tmp_path, rounds=45, threads=4, cap=cap)
        for number in range(1, 4):  # of 360 replies
            come(lambda least=50 * number: race.told(0) + race.told(1) >= least)
            if how == "halt":
                server.restart()
            else:
                for _ in range(5):
                    everybody = (
                        "select pg_terminate_backend(pid) from pg_stat_activity"
                        " where application_name = 'sulq ledger'"
                    )
                    sql(address, everybody)
        race.finish()
        check(address, race.released(), replicas[1], cap)
