/**
 * The interface of the object store: a front that checks the sessions of this cloud, in front of a real server. The cloud starts it, passes
 * it the requests signed for S3, and ends it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from './clock'
import type { Identities } from './identity/identities'
import type { Kms } from './identity/kms'
import type { Limits } from './s3/pace'
import type { Faults } from './world/faults'

export interface StoreFrontOptions {
  /** The front's port on loopback; 0 takes a free one. */
  port: number
  /** The region of buckets created without one. */
  region: string
  account: string
  /** Looks up secrets of keys (`secretOf`), and checks permissions on objects (`judge`). */
  identities: Identities
  /** Judges the use of keys of KMS. */
  kms: Kms
  /** Rules whose `where.service` is `s3`. */
  faults: Faults
  clock: Clock
  /** The limits of a client's connection; missing where no machine has a throughput. */
  limitsOf?: ((client: Socket) => Limits | undefined) | undefined
  /** How far the clock on the wire is ahead of this host's clock. */
  aheadMs: number
}

export interface StoreFront {
  /** Address such as `http://127.0.0.1:PORT`. */
  readonly endpoint: string
  /** Handles a request that arrived at the address of the other services. */
  handle(request: IncomingMessage, response: ServerResponse): void
  /** Resolves when its server has ended permanently: without a text after `stop`, otherwise with the reason. */
  readonly ended: Promise<string | undefined>
  /** Returns when its server and all its processes have ended. */
  stop(): Promise<void>
}

export type StartFront = (options: StoreFrontOptions) => Promise<StoreFront>
