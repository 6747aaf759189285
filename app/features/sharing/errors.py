"""The errors of shares and recipients."""

from __future__ import annotations

from collections.abc import Sequence

from app.kernel.format.errors import FieldError, HeadwaterError, InvalidRequest


class InvalidShare(InvalidRequest):
    """A share or a recipient that cannot be: names that Delta Sharing cannot have, or a filter that does not fit."""

    code = "invalid-share"
    title = "The share is not valid"

    @classmethod
    def of(cls, errors: Sequence[FieldError]) -> InvalidShare:
        """The error of these members of the request, of which there is at least one."""
        return cls("; ".join(f"{each.pointer}: {each.detail}" for each in errors), errors)


class ShareExists(HeadwaterError):
    """The tenant has a share of this name; capitals do not make another name. Fact: `name`."""

    code = "share-exists"
    title = "There is a share with this name"


class RecipientExists(HeadwaterError):
    """The share has a recipient of this name. Fact: `name`."""

    code = "recipient-exists"
    title = "There is a recipient with this name"


class RecipientExpired(HeadwaterError):
    """The recipient has expired, so no token of it is valid. Fact: `expires_at`."""

    code = "recipient-expired"
    title = "The recipient has expired"
