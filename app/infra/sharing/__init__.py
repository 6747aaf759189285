"""What concurrent requests and tenants share in a process. Each idea has one implementation here.

    single_flight   a call that is under way, joined by all who request the same
    next_flight     the next call, where an answer must not be older than the request
    fair_slots      slots that tenants share: threads, calls, tasks, bytes that wait to be sent
    byte_cache      values that are kept in a bounded memory
    recent_values   values that hold for a short time, whatever changes meanwhile

A read of the storage, which two requests need at the same time:

>>> from functools import partial
>>> from threading import Event
>>> from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread
>>> reads, answered = SingleFlight(), Event()
>>> read = partial(in_daemon_thread, partial(answered.wait, 10), "read")
>>> first, second = reads.join("file", read), reads.join("file", read)
>>> answered.set()
>>> first is second, first.result(10)
(True, True)
"""
