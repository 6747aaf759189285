"""Errors of webhooks."""

from __future__ import annotations

from app.kernel.format.errors import HeadwaterError, InvalidRequest


class InvalidWebhook(InvalidRequest):
    """A webhook that cannot be: above all a URL to which nothing may be sent."""

    code = "invalid-webhook"
    title = "The webhook is not valid"


class WebhookGivenUp(HeadwaterError):
    """Several messages in a row were given up, or the receiver has refused all. Facts: `status`, `failures`."""

    code = "webhook-given-up"
    title = "The receiver of the webhook takes no messages"
