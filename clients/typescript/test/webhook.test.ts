// Messages of webhooks are verified as Standard Webhooks says.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';

import { InvalidSignatureError, verifyWebhook } from 'headwater-client';

// The example that the reference libraries are tested with.
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const BODY = '{"test": 2432232314}';
const EXAMPLE = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

function headers(secrets: Array<string>, body = BODY, seconds = 0): Record<string, string> {
  const sentAt = Math.floor(Date.now() / 1000) + seconds;
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`msg_1.${sentAt}.${body}`).digest('base64')}`;
  });
  return { 'Webhook-Id': 'msg_1', 'Webhook-Timestamp': String(sentAt), 'Webhook-Signature': signatures.join(' ') };
}

function refused(text: RegExp) {
  return (error: unknown) => error instanceof InvalidSignatureError && text.test(error.message);
}

test('the published example is verified', async () => {
  const message: unknown = await verifyWebhook(SECRET, EXAMPLE, BODY, Infinity);
  assert.deepEqual(message, { test: 2432232314 });
});

test('messages are verified with each secret of a rotation, of text and bytes, with headers of each kind', async () => {
  const both = headers([OTHER, SECRET]);
  for (const secret of [SECRET, OTHER, [OTHER, SECRET]]) assert.ok(await verifyWebhook(secret, both, BODY));
  assert.ok(await verifyWebhook([SECRET, OTHER], new Headers(headers([OTHER])), new TextEncoder().encode(BODY)));
  const body = '{"name": "Zoë"}';
  assert.ok(await verifyWebhook(SECRET, headers([SECRET], body), body));
});

test('old and future messages are refused', async () => {
  for (const seconds of [-400, 400]) {
    const sent = headers([SECRET], BODY, seconds);
    await assert.rejects(verifyWebhook(SECRET, sent, BODY), refused(/at most 300 s/));
    assert.ok(await verifyWebhook(SECRET, sent, BODY, 500));
  }
});

test('another body, id, time, secret or signature is refused', async () => {
  const sent = headers([SECRET]);
  await assert.rejects(verifyWebhook(SECRET, sent, `${BODY} `), refused(/no signature/));
  await assert.rejects(verifyWebhook(OTHER, sent, BODY), refused(/no signature/));
  await assert.rejects(verifyWebhook([], sent, BODY), refused(/no signature/));
  await assert.rejects(verifyWebhook(SECRET, { ...sent, 'Webhook-Id': 'msg_2' }, BODY), refused(/no signature/));
  for (const signature of ['v1,AAAA', 'v1,*', 'v2,AAAA', ' '.repeat(100_000)]) {
    await assert.rejects(verifyWebhook(SECRET, { ...sent, 'Webhook-Signature': signature }, BODY), refused(/no signature/));
  }
  for (const time of ['now', '-1', '9'.repeat(5_000), '1e9']) {
    await assert.rejects(verifyWebhook(SECRET, { ...sent, 'Webhook-Timestamp': time }, BODY), refused(/no number/));
  }
  for (const name of Object.keys(sent)) {
    await assert.rejects(verifyWebhook(SECRET, { ...sent, [name]: undefined }, BODY), refused(new RegExp(name.toLowerCase())));
  }
});

test('a signed body that is no JSON is refused, and a malformed secret is a mistake of the caller', async () => {
  await assert.rejects(verifyWebhook(SECRET, headers([SECRET], '{'), '{'), refused(/no JSON/));
  for (const secret of ['', 'whsec_', 'whsec_*', SECRET.slice('whsec_'.length)]) {
    await assert.rejects(verifyWebhook(secret, headers([SECRET]), BODY), TypeError);
  }
});
