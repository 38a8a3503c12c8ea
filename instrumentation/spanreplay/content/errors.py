"""What can go wrong with a recorded text."""


class CodecError(ValueError):
    """A text is no value of the codec: not JSON, or a tag with a payload that does not fit it."""


class RecordedError(Exception):
    """Stands for a recorded exception whose class is not there any more, was never imported, or cannot be rebuilt.

    ``str()`` gives the recorded message alone, because programs put it into prompts and logs.

    Attributes:
        type_name: ``module:QualName`` of the recorded class.
        message: What ``str()`` of the recorded exception gave.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(type_name, message)
        self.type_name = type_name
        self.message = message

    def __str__(self) -> str:
        return self.message
