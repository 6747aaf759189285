"""Python's garbage collector is off while a process loads its modules, once it has imported this one.

Modules make little garbage, and the collector takes a sixth of the time in which they load.
"""

import gc

gc.disable()


def start_collector() -> None:
    """Turns the collector on. It then leaves out what there is now, which lives as long as the process.

    A full collection walks all other objects, and nothing else runs meanwhile: 0.5 s for the loaded modules, such as
    while the first `GET /schema` renders the document.
    """
    gc.freeze()
    gc.enable()
