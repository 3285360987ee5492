/**
 * The place of the object store: a front that checks the sessions of this cloud, put before a real server. The cloud starts it,
 * hands it the requests that are signed for S3, and ends it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from './clock'
import type { Identities } from './identity/identities'
import type { Faults } from './world/faults'

export interface StoreFrontOptions {
  /** Where the front listens, on loopback; 0 takes a free port. */
  port: number
  /** The region of buckets that name none. */
  region: string
  account: string
  /** Names that are taken by others. */
  foreignBuckets: readonly string[]
  /** Whose key this is (`secretOf`), and what they may do with which object (`judge`). */
  identities: Identities
  /** Rules whose `where.service` is `s3`. */
  faults: Faults
  clock: Clock
  /** How far the clock on the wire is ahead of that of this host. */
  aheadMs: number
}

export interface StoreFront {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string
  /** Takes a request that came to the address of the other services. */
  handle(request: IncomingMessage, response: ServerResponse): void
  /** Resolves when its server is down for good: without a text after `stop`, else with what happened. */
  readonly ended: Promise<string | undefined>
  /** Returns when its server and every process of it have ended. */
  stop(): Promise<void>
}

export type StartFront = (options: StoreFrontOptions) => Promise<StoreFront>
