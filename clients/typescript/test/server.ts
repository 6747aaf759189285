// A server in this process, which answers what a test has stated.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { connect, retryingFetch, type Client } from 'headwater-client';

export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body: unknown;
}

/** A request as it was received. */
export interface Received {
  method: string;
  url: string;
  headers: NodeJS.Dict<string | Array<string>>;
  body: any;
}

/** Answers with `replies` in turn, the last one for ever, or with what `reply` says. */
export class Answers {
  replies: Array<Reply> = [];
  reply?: (request: Received) => Reply | undefined;
  readonly requests: Array<Received> = [];
  readonly slept: Array<number> = [];
  private readonly server: Server;

  constructor() {
    this.server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      const text = Buffer.concat(parts).toString();
      const received = { method: request.method!, url: request.url!, headers: request.headers, body: text && JSON.parse(text) };
      this.requests.push(received);
      const reply = this.reply ? this.reply(received) : this.replies.length > 1 ? this.replies.shift()! : this.replies[0]!;
      if (reply === undefined) {
        response.destroy();
        return;
      }
      const isProblem = reply.status >= 400 && typeof reply.body !== 'string';
      const type = typeof reply.body === 'string' ? 'text/plain' : `application/${isProblem ? 'problem+json' : 'json'}`;
      response.writeHead(reply.status, { 'Content-Type': type, ...reply.headers });
      response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body));
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  /** A client whose pauses between attempts take no time. */
  client(): Client {
    const sleep = async (milliseconds: number) => {
      this.slept.push(milliseconds);
    };
    const url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return connect({ url, apiKey: 'hw_key', fetch: retryingFetch({ sleep }) });
  }
}
