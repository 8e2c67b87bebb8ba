"""Exceptions. The text of each is one line: what is wrong, where, and what to do."""


class PleachError(Exception):
    """Base of all exceptions of this module."""


class NotFoundError(PleachError, FileNotFoundError):
    """There is no such file."""


class DamagedError(PleachError):
    """The file is damaged, or it is not a Pleach file."""


class TypesError(PleachError, TypeError):
    """The keys or values have another type than the file."""


class InputError(PleachError, ValueError):
    """An argument or the input of a build is not valid."""


class BuildError(PleachError):
    """A file could not be built."""


class ClosedError(PleachError, ValueError):
    """The index was closed."""


class DeviceError(PleachError):
    """A device is missing, cannot be used, or failed."""
