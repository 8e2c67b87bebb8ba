"""Exceptions. The text of each is one line: what is wrong, where, and what to do."""


class PleachError(Exception):
    """Base of all exceptions of this module."""


class NotFoundError(PleachError, FileNotFoundError):
    """There is no such file or set."""


class DamagedError(PleachError):
    """A file or a set is damaged, or it is not of Pleach."""


class InputError(PleachError, ValueError):
    """An argument or a statement is not valid."""


class VersionError(PleachError, ImportError):
    """The package `datafusion` is missing, or has another major version than this module."""
