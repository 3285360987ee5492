/** What a year runs on: a server, workers with the driven clock, a provider, and the store. The server can be set back to a backup. */
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Worker } from '@temporalio/worker'
import { startLeashed, type LeashedProcess } from '../../cli/dev/temporal/leash'
import { DEV_NAMESPACE, serverArguments } from '../../cli/dev/temporal/launch'
import { choosePorts } from '../../cli/dev/temporal/ports'
import { waitUntilReady } from '../../cli/dev/temporal/ready'
import { SEARCH_ATTRIBUTES } from '../../core/queues'
import { freshNamespace } from '../support/namespace'
import { patient } from '../support/patience'
import { connectTo, testServer, type TestConnection } from '../support/temporal'
import { ControlPlane, type Ground, type WorkerName } from '../workflows/harness'
import type { Boundary } from './boundary'

/** Workers whose workflows and activities have the driven clock. */
export class DrivenPlane extends ControlPlane {
  constructor(
    at: TestConnection,
    { namespace, ground, boundary }: { namespace: string; ground: Ground; boundary: Boundary },
  ) {
    super(at, namespace, ground)
    this.boundary = boundary
  }

  private readonly boundary: Boundary

  protected override async make(name: WorkerName): Promise<Worker | undefined> {
    const worker = await super.make(name)
    return worker && this.boundary.put(worker)
  }
}

/** A server and a namespace in it. */
export interface Home {
  at: TestConnection
  namespace: string
  close: () => Promise<void>
}

/** In the server that all tests share. */
export async function sharedHome(): Promise<Home> {
  const at = await connectTo()
  return { at, namespace: await freshNamespace(at.client.connection as never), close: () => at.close() }
}

/** A server of its own, with its state in a file that can be kept and put back. */
export class OwnServer implements Home {
  at!: TestConnection
  readonly namespace = DEV_NAMESPACE
  private server: LeashedProcess | undefined

  private constructor(
    private readonly folder: string,
    private readonly args: string[],
    private readonly port: number,
  ) {}

  /** @param historyMax it suggests to workflows to continue in a fresh history once they have so many events */
  static async start(historyMax?: number): Promise<OwnServer> {
    const folder = await mkdtemp(join(tmpdir(), 'quarters-'))
    const ports = await choosePorts({})
    const suggested = ['--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${historyMax}`]
    const args = [
      ...serverArguments(ports, { dataFile: join(folder, 'state.db') }),
      ...(historyMax === undefined ? [] : suggested),
    ]
    const own = new OwnServer(folder, args, ports.grpc)
    await own.up()
    return own
  }

  async up(): Promise<void> {
    this.server = startLeashed(testServer().executable.path, this.args)
    await waitUntilReady({
      port: this.port,
      namespace: DEV_NAMESPACE,
      signal: AbortSignal.timeout(patient(60_000)),
      searchAttributes: Object.values(SEARCH_ATTRIBUTES),
    })
    this.at = await connectTo(`127.0.0.1:${this.port}`)
  }

  async down(): Promise<void> {
    await this.at.close()
    await this.server?.stop()
    this.server = undefined
  }

  /** The state of a server that is down. */
  keep(): Promise<void> {
    return this.copy('', KEPT)
  }

  async putBack(): Promise<void> {
    for (const name of await readdir(this.folder))
      if (!name.startsWith(KEPT)) await rm(join(this.folder, name))
    await this.copy(KEPT, '')
  }

  private async copy(from: string, to: string): Promise<void> {
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(KEPT) !== (from === KEPT)) continue
      await cp(join(this.folder, name), join(this.folder, to + name.slice(from.length)))
    }
  }

  async close(): Promise<void> {
    await this.down()
    await rm(this.folder, { recursive: true, force: true })
  }
}

const KEPT = 'kept-'
