"""The error of a command that its user can correct."""


class CommandError(Exception):
    """Printed without a traceback; the command exits with code 1."""
