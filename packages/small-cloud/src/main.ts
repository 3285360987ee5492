/** The command-line program: `small-cloud [--world FILE] [--port N]`. */
import { parseArgs } from 'node:util'
import { startCloud, WorldError, type StartFront } from './index'

const USAGE = `usage: small-cloud [--world FILE] [--port N] [--store-port N]

  --world FILE    what the cloud is like, YAML or JSON; see the package's README
  --port N        where the services listen on 127.0.0.1; a free port when missing
  --store-port N  where the object store listens; a free port when missing

Prints one line of JSON when it is ready; it contains the keys of the cloud. Ends on SIGINT or SIGTERM, with every machine.
`

/** Exit codes: the object store ended permanently; invalid arguments; invalid world. */
const EXIT_STORE = 1
const EXIT_USAGE = 2
const EXIT_WORLD = 3

function readArguments(words: string[]): { world?: string; port?: number; storePort?: number } | string {
  const options = {
    world: { type: 'string' },
    port: { type: 'string' },
    'store-port': { type: 'string' },
    help: { type: 'boolean' },
  } as const
  try {
    const { values } = parseArgs({ args: words, options })
    if (values.help === true) return ''
    const port = portOf('--port', values.port)
    const storePort = portOf('--store-port', values['store-port'])
    return {
      ...(values.world === undefined ? {} : { world: values.world }),
      ...(port === undefined ? {} : { port }),
      ...(storePort === undefined ? {} : { storePort }),
    }
  } catch (error) {
    return (error as Error).message
  }
}

function portOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new Error(`${name} must be a port, 0 to 65535, not ${text}`)
}

/**
 * Runs until it receives a signal. Returns the exit code.
 *
 * @param startFront starts the object store; without it the cloud has no store
 */
export async function main(words: string[], startFront?: StartFront): Promise<number> {
  const options = readArguments(words)
  if (typeof options === 'string') {
    const stream = options === '' ? process.stdout : process.stderr
    stream.write(options === '' ? USAGE : `${options}\n\n${USAGE}`)
    return options === '' ? 0 : EXIT_USAGE
  }
  const told = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(undefined))
  })
  try {
    const cloud = await startCloud({ ...options, ...(startFront === undefined ? {} : { startFront }) })
    const { endpoint, storeEndpoint, region, credentials, controlKey, providers } = cloud
    const ready = {
      endpoint,
      ...(storeEndpoint === undefined ? {} : { s3Endpoint: storeEndpoint }),
      region,
      ...credentials,
      controlKey,
      ...providers,
    }
    process.stdout.write(`${JSON.stringify(ready)}\n`)
    const reason = await Promise.race([told, cloud.ended])
    await cloud.stop()
    if (reason !== undefined) process.stderr.write(`${reason}\n`)
    return reason === undefined ? 0 : EXIT_STORE
  } catch (error) {
    process.stderr.write(`${explained(error, options)}\n`)
    return EXIT_WORLD
  }
}

function explained(error: unknown, { storePort }: { storePort?: number }): string {
  if (error instanceof WorldError) return error.message
  const { code, syscall, port, path } = error as NodeJS.ErrnoException & { port?: number }
  if (code === 'EADDRINUSE')
    return `port ${port} is taken; give another ${port === storePort ? '--store-port' : '--port'}, or none for a free one`
  // All folders of the cloud are in the temporary one.
  if (syscall === 'mkdtemp' || syscall === 'mkdir')
    return `${path} cannot be used (${code}); set TMPDIR to a folder that this user may write`
  return error instanceof Error ? error.message : String(error)
}
