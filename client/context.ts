import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type * as temporal from '@temporalio/client'
import type { PayloadCodec } from '@temporalio/common'
import { stampingInterceptors } from '../core/stamping'
import { formatDuration } from '../core/time/time'
import { openStore } from '../storage/open-store'
import { PayloadSeal } from '../storage/payload-seal'
import { openDeploymentKey } from '../storage/deployment-key'
import { readDeploymentKey } from '../storage/secrets'
import { readDeployment } from '../storage/deployment'
import type { ObjectStore } from '../storage/store'
import { answeringStore } from './answering-store'
import { DeploymentClock } from './clock'
import type { ClientConfig } from './config'
import { isCoded, messageOf } from '../core/errors'
import { CrucibleError, toCrucibleError } from './errors'

/**
 * Timeouts of successive connection attempts. A busy machine may need several; a closed port is reported immediately. In total, less than a
 * person waits before looking for the problem.
 */
const CONNECT_TIMEOUTS_MS = [5_000, 10_000, 15_000]
/** Limit for probing a port: the operating system answers for a local one immediately, unless it is very busy. */
const PROBE_TIMEOUT_MS = 5_000

/** Limit on comparing the key with the store's. A bucket that hangs is asked for minutes, in which no request would be sent. */
const KEY_CHECK_LIMIT_MS = 4_000

export interface ContextOptions {
  /** Takes remarks for the person who waits. */
  onNote?: (text: string) => void
  connectTimeoutsMs?: readonly number[]
}

/** The context of every client function: one store, and one connection that is made at first use. */
export class Context {
  #store: ObjectStore | undefined
  #client: Promise<temporal.Client> | undefined
  #isClosing = false
  /** Whether no server answered before: the next connection is tried once, without a note. */
  #wasSilent = false
  #lastNote = ''
  /** Sentences about documents that could not be read, whose content an answer lacks. */
  readonly gaps: string[] = []
  readonly clock: DeploymentClock

  /** @param wallClock this computer's clock, which may be off */
  constructor(
    readonly config: ClientConfig,
    private readonly wallClock: () => number,
    private readonly options: ContextOptions = {},
  ) {
    this.clock = new DeploymentClock(wallClock, () => this.#store?.clockOffsetMs)
  }

  /** The time by the deployment's clock. */
  readonly now = (): number => this.clock.now()

  /** A remark for the person who waits for an answer. */
  note(text: string): void {
    this.options.onNote?.(text)
  }

  /** A remark that several readers of one job make at a time. */
  noteOnce(text: string): void {
    if (text !== this.#lastNote) this.note(text)
    this.#lastNote = text
  }

  get store(): ObjectStore {
    try {
      this.#store ??= patientOf(openStore(this.config.home.storeUrl, this.wallClock))
      return this.#store
    } catch (error) {
      throw toCrucibleError(error)
    }
  }

  /** Throws `unavailable` when the server does not answer; the next call tries again. */
  temporal(): Promise<temporal.Client> {
    this.#client ??= this.#connect().catch((error: unknown) => {
      this.#client = undefined
      throw error
    })
    return this.#client
  }

  /** Connects, and compares this computer's clock with the server's present time. Throws `unavailable` when the server does not answer. */
  async compareClocks(): Promise<void> {
    await this.clock.compareExactly(await this.temporal(), this.config.temporal.namespace)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    if (this.clock.remark !== undefined) this.note(this.clock.remark)
    const client = await this.#client?.catch(() => undefined)
    this.#client = undefined
    await client?.connection.close()
  }

  /** Signs requests, and checks answers if a key exists. Without a key this client can only read. */
  #seal(): PayloadSeal {
    const { secretKeyFile } = this.config.home
    let own: Promise<Buffer> | undefined
    return new PayloadSeal({
      key: (to) => {
        if (to === 'read') return readDeploymentKey(secretKeyFile)
        own ??= this.#ownKey()
        return own
      },
      onRefused: 'throw',
    })
  }

  /** A store that does not answer, or not soon, stops no request to Temporal: the workers judge the key. */
  async #ownKey(): Promise<Buffer> {
    const { secretKeyFile } = this.config.home
    const key = await readDeploymentKey(secretKeyFile)
    const opened = openDeploymentKey(this.store, secretKeyFile)
    if (key === undefined) return opened
    const checked = opened.catch((error: unknown) => {
      if (isOfStore(error)) return key
      throw error
    })
    return Promise.race([checked, sleep(KEY_CHECK_LIMIT_MS, key, { ref: false })])
  }

  async #connect(): Promise<temporal.Client> {
    const { connection: options, namespace, isOfDev } = this.config.temporal
    const noServer = (where: string, why: string, cause?: unknown): CrucibleError =>
      new CrucibleError('unavailable', `No Temporal server answers at ${where} (${why}).`, {
        hint: isOfDev === true ? RESTARTS : 'Start one here with `crucible dev`, or set TEMPORAL_ADDRESS.',
        cause,
      })
    const { address = 'localhost:7233', tls, apiKey, metadata } = options
    const { Client, Connection } = require('@temporalio/client') as typeof temporal
    const allMs = this.options.connectTimeoutsMs ?? CONNECT_TIMEOUTS_MS
    const timeoutsMs = this.#wasSilent ? allMs.slice(-1) : allMs
    for (const [index, connectTimeout] of timeoutsMs.entries()) {
      if (await isRefused(address)) throw noServer(address, 'the port is closed')
      try {
        const connection = await Connection.connect({
          address,
          connectTimeout,
          tls,
          apiKey,
          metadata,
        })
        const client = new Client({
          connection,
          namespace,
          interceptors: stampingInterceptors(this.now, randomUUID, () =>
            readDeployment(this.store).catch(() => undefined),
          ),
          dataConverter: { payloadCodecs: [this.#seal()] },
        })
        const listing = new Client({ connection, namespace, dataConverter: { payloadCodecs: [UNREAD] } })
        client.workflow.list = (options) => listing.workflow.list(options)
        await this.clock.compareWith(client, namespace)
        return client
      } catch (error) {
        const known = toCrucibleError(error)
        if (known.kind === 'permission') throw known
        const nextMs = timeoutsMs[index + 1]
        if (nextMs === undefined || this.#isClosing || CERTAIN.test(messageOf(error))) {
          this.#wasSilent = true
          throw noServer(address, messageOf(error), error)
        }
        this.note(
          `The Temporal server at ${address} has not answered within ${formatDuration(connectTimeout)}; waiting up to ${formatDuration(nextMs)} more.`,
        )
      }
    }
    throw noServer(address, 'no time left to wait')
  }
}

/** The requests to a bucket have their own limits. */
const patientOf = (store: ObjectStore): ObjectStore =>
  store.url.startsWith('file:') ? answeringStore(store) : store

const isOfStore = (error: unknown): boolean =>
  isCoded(error, 'store') || (error instanceof CrucibleError && isCoded(error.cause, 'store'))

const RESTARTS = '`crucible dev` runs here and restarts its server: try again in a few seconds.'

/** Replaces the payloads of a list: their memos may be of strangers, and our workflows have none. */
const UNREAD: PayloadCodec = {
  encode: async (payloads) => payloads,
  decode: async (payloads) => payloads.map(() => ({ metadata: { encoding: Buffer.from('binary/null') } })),
}

/** Part of gRPC's message for a server that waiting does not help to reach. */
const CERTAIN = /ECONNREFUSED|ENOTFOUND/

const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]):(\d+)$/

/** Whether a local port is certainly closed, which the operating system reports immediately. */
async function isRefused(address: string): Promise<boolean> {
  const port = LOOPBACK.exec(address)?.[1]
  if (port === undefined) return false
  const host = address.slice(0, -port.length - 1).replace(/[[\]]/g, '')
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), timeout: PROBE_TIMEOUT_MS })
    const answer = (isClosed: boolean): void => {
      socket.destroy()
      resolve(isClosed)
    }
    socket.once('connect', () => answer(false)).once('timeout', () => answer(false))
    socket.once('error', (error: NodeJS.ErrnoException) => answer(isConnectionRefused(error)))
  })
}

/** `localhost` may be two addresses; each must refuse. */
function isConnectionRefused(error: NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }): boolean {
  return (error.errors ?? [error]).every(({ code }) => code === 'ECONNREFUSED')
}
