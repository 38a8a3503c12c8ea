"""What can go wrong with a store. Every message says what was wanted, what was found, where, and what to do."""


class StoreError(Exception):
    """A store cannot do what was asked of it. The text is fit to show to a person."""


class MissingStoreError(StoreError):
    """There is no store at that path."""


class ReadOnlyStoreError(StoreError):
    """The store's folder or database cannot be written by this user."""


class LockedStoreError(StoreError):
    """Another process holds the store for longer than we are willing to wait."""


class DamagedStoreError(StoreError):
    """The database, or content inside it, is not what was written."""


class NewerStoreError(StoreError):
    """The store was written by a newer spanreplay than this one."""


class FullStoreError(StoreError):
    """There is no room left on the device."""


class QueryError(StoreError):
    """The SQL was refused or failed; carries DuckDB's own message."""


class EncodingError(StoreError):
    """A stored value has a form that this version does not know. It is refused rather than misread."""
