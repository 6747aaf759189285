// The signatures of webhook messages, for receivers: those of Standard Webhooks (symmetric, version 1).

const TOLERANCE_SECONDS = 300;
const PREFIX = 'whsec_';
const VERSION = 'v1,';
// For a day after a rotation the service signs with two secrets; other senders might use some more.
const SIGNATURES_MAX = 16;

/** The headers of a request, as `fetch` or Node.js have them. */
export type WebhookHeaders = Headers | Record<string, string | Array<string> | undefined>;

/** What a webhook posts: docs/webhooks.md describes `data` for each type. */
export interface WebhookMessage {
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
}

/** A message is not one that the service has signed for this receiver just now. */
export class InvalidSignatureError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidSignatureError';
  }
}

/**
 * The message of a webhook, once its signature is verified. Throws InvalidSignatureError, and TypeError for a malformed
 * secret.
 *
 * `secret`: that of the webhook (`whsec_…`), or several, of which one has to match. `body`: as it was received, byte
 * for byte. `toleranceSeconds`: how much the clocks of the sender and of this machine may differ, which bounds how late
 * a copied message is accepted. The signature is compared by Web Crypto, in constant time.
 */
export async function verifyWebhook(
  secret: string | Array<string>,
  headers: WebhookHeaders,
  body: Uint8Array | string,
  toleranceSeconds: number = TOLERANCE_SECONDS,
): Promise<WebhookMessage> {
  const keys = await Promise.all((typeof secret === 'string' ? [secret] : secret).map(keyOf));
  const [id, sentAt, signatures] = ['id', 'timestamp', 'signature'].map((name) => header(headers, `webhook-${name}`));
  checkTime(sentAt!, toleranceSeconds);
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const content = joined(new TextEncoder().encode(`${id}.${sentAt}.`), bytes);
  const sent = signatures!.split(' ', SIGNATURES_MAX).flatMap(decoded);
  const checks = keys.flatMap((key) => sent.map((signature) => crypto.subtle.verify('HMAC', key, signature, content)));
  if (!(await Promise.all(checks)).includes(true)) {
    throw new InvalidSignatureError('no signature is one of this body, id and time with the secret');
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as WebhookMessage;
  } catch (error) {
    throw new InvalidSignatureError(`the body is no JSON: ${(error as Error).message}`);
  }
}

function keyOf(secret: string): Promise<CryptoKey> {
  const [key] = secret.startsWith(PREFIX) ? fromBase64(secret.slice(PREFIX.length)) : [];
  if (key === undefined || key.length === 0) throw new TypeError(`expected a secret of a webhook: ${PREFIX} and base64`);
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

function decoded(signature: string): Array<Uint8Array<ArrayBuffer>> {
  return signature.startsWith(VERSION) ? fromBase64(signature.slice(VERSION.length)) : [];
}

/** The bytes of a text in base64; nothing if it is none. */
function fromBase64(text: string): Array<Uint8Array<ArrayBuffer>> {
  try {
    return [Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))];
  } catch {
    return [];
  }
}

function joined(start: Uint8Array, end: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(start.length + end.length);
  all.set(start);
  all.set(end, start.length);
  return all;
}

function header(headers: WebhookHeaders, name: string): string {
  const found =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([each]) => each.toLowerCase() === name)?.[1];
  const text = Array.isArray(found) ? found.join(' ') : found;
  if (!text) throw new InvalidSignatureError(`the header ${name} is missing`);
  return text;
}

function checkTime(sentAt: string, toleranceSeconds: number): void {
  if (!/^[0-9]{1,12}$/.test(sentAt)) throw new InvalidSignatureError('the header webhook-timestamp is no number of seconds');
  const age = Math.round(Date.now() / 1000 - Number(sentAt));
  if (Math.abs(age) <= toleranceSeconds) return;
  const when = age > 0 ? `${age} s old` : `${-age} s ahead of this machine's clock`;
  throw new InvalidSignatureError(`the message is ${when}; at most ${toleranceSeconds} s are accepted`);
}
