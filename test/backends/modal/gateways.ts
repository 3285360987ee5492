import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { startCloud, type Cloud, type CloudOptions, type WorldText } from '#small-cloud'
import { pythonClients } from '../../support/python-clients'

/** A gateway over a small cloud's Modal. */
export interface Gateway {
  cloud: Cloud
  endpoint: string
  token: { key: string; secret: string }
  /** Modal's control plane, which its own client asks; missing for the stand-in. */
  modal?: string
  close(): Promise<void>
}

export type OpenGateway = (world?: WorldText, options?: Options) => Promise<Gateway>

type Options = Pick<CloudOptions, 'directory' | 'createMachine'>

const QUICK: WorldText['durations'] = { pending: '100ms', boot: '20ms' }

async function openCloud(world: WorldText, options: Options = {}): Promise<Omit<Gateway, 'close'>> {
  const cloud = await startCloud({
    world: { ...world, durations: { ...QUICK, ...world.durations } },
    ...options,
  })
  const { endpoint = '', key = '', secret = '' } = cloud.providers['modal']!
  return { cloud, endpoint, token: { key, secret } }
}

/** The stand-in of the small cloud. */
export const openStandIn: OpenGateway = async (world = {}, options) => {
  const gateway = await openCloud(world, options)
  return { ...gateway, close: () => gateway.cloud.stop() }
}

/** The gateway itself, with Modal's own client, as Python processes; undefined without the client. */
export const openRealGateway: OpenGateway | undefined =
  pythonClients('modal-clients') === undefined ? undefined : openPython

async function openPython(world: WorldText = {}): Promise<Gateway> {
  const { cloud, endpoint, token } = await openCloud(world)
  const python = join(pythonClients('modal-clients')!, 'python3')
  const { key, secret } = token
  const child = spawn(python, ['-B', join(__dirname, 'python/serve.py'), `${endpoint}/control`], {
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      CRUCIBLE_GATEWAY_SECRETS: Object.keys(world.modal?.secrets ?? {}).join(','),
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  child.stdin.write(`${JSON.stringify({ key, secret, controlKey: cloud.controlKey })}\n`)
  const errors: string[] = []
  child.stderr.on('data', (chunk) => errors.push(String(chunk)))
  const line = await Promise.race([
    once(child.stdout, 'data').then(([chunk]) => String(chunk)),
    once(child, 'exit').then(() => undefined),
  ])
  if (line === undefined) {
    await cloud.stop()
    throw new Error(`the gateway ended: ${errors.join('')}`)
  }
  return {
    cloud,
    token,
    ...(JSON.parse(line) as { endpoint: string; modal: string }),
    close: async () => {
      const ended = once(child, 'exit')
      child.stdin.end()
      await ended
      await cloud.stop()
    },
  }
}
