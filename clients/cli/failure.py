"""How a command says that it failed for a reason its user can do something about."""


class CommandError(Exception):
    """Printed as it is, without a traceback; the command exits with code 1."""
