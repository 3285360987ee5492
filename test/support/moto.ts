import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { freePort } from './free-port'
import { until } from './until'

/** moto: an AWS made by others, as a second opinion on the wire. It launches nothing and knows no faults. */
export interface Moto {
  endpoint: string
  stop(): Promise<void>
}

export function hasMotoIn(python: string): boolean {
  return spawnSync(python, ['-c', 'import moto.server, flask_cors']).status === 0
}

export async function startMoto(python: string): Promise<Moto> {
  const port = await freePort()
  const endpoint = `http://127.0.0.1:${port}`
  const program = 'from moto.server import main; import sys; main(sys.argv[1:])'
  const server = spawn(python, ['-c', program, '-H', '127.0.0.1', '-p', String(port)], { stdio: 'ignore' })
  await until(async () => (await fetch(`${endpoint}/moto-api/`).catch(() => undefined))?.ok === true)
  return {
    endpoint,
    stop: async () => {
      if (server.exitCode !== null) return
      server.kill('SIGKILL')
      await once(server, 'exit')
    },
  }
}
