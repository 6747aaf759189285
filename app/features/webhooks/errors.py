"""Errors of webhooks."""

from __future__ import annotations

from app.kernel.format.errors import FieldError, HeadwaterError, InvalidRequest


class InvalidWebhook(InvalidRequest):
    """A webhook that cannot be: above all a URL to which nothing may be sent."""

    code = "invalid-webhook"
    title = "The webhook is not valid"

    @classmethod
    def at(cls, pointer: str, detail: str) -> InvalidWebhook:
        """The error of one member of the request."""
        return cls(f"{pointer}: {detail}", [FieldError(pointer=pointer, detail=detail)])


class WebhookGivenUp(HeadwaterError):
    """Several messages in a row were given up, or the receiver has refused all. Facts: `status`, `failures`."""

    code = "webhook-given-up"
    title = "The receiver of the webhook takes no messages"
    may_pass = False
