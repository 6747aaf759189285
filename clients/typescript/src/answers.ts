// Answers of operations as values and errors.

import type { Problem } from './generated/index.js';

/** The service refused a request, or a job failed or was cancelled. */
export class ProblemError extends Error {
  /** The problem document (RFC 9457). A response of another kind, such as a proxy's, has its status and its text. */
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.status} ${problem.type}: ${problem.detail ?? problem.title}`);
    this.name = 'ProblemError';
    this.problem = problem;
  }

  /** The last part of the problem's type, such as `not-found`. */
  get code(): string {
    return this.problem.type.slice(this.problem.type.lastIndexOf('/') + 1);
  }
}

/** What an operation returns. */
export interface Answer<T> {
  data?: T;
  error?: unknown;
  response?: Response;
}

/** The value of a successful answer. Throws ProblemError for any other. */
export async function value<T>(answer: Answer<T> | Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await answer;
  if (error === undefined && data !== undefined) return data;
  if (response === undefined) throw error;
  if (isProblem(error)) throw new ProblemError(error);
  const detail = typeof error === 'string' ? error : response.statusText;
  throw new ProblemError({ type: 'about:blank', title: response.statusText, status: response.status, detail } as Problem);
}

/** Whether a value is a problem document. */
export function isProblem(error: unknown): error is Problem {
  return typeof error === 'object' && error !== null && 'type' in error && 'status' in error;
}
