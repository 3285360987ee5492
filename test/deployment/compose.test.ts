import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { BACKENDS } from '../../backends/registry'
import { SEARCH_ATTRIBUTES } from '../../core/queues'
import { readClientConfig } from '../../client/config'
import { openStore } from '../../storage/open-store'
import { readWorkerConfig } from '../../workers/config'
import { rolesOf } from '../../workers/run'

interface Service {
  image: string
  build?: string
  command?: string[]
  entrypoint?: string[]
  environment?: Record<string, string | number>
  ports?: string[]
  volumes?: string[]
  configs?: { source: string; target: string }[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[]; start_period?: string }
  restart?: string
  user?: string
  init?: boolean
  profiles?: string[]
}

const ROOT = join(__dirname, '..', '..')
const FILE = join(ROOT, 'docker-compose.yml')
const text = readFileSync(FILE, 'utf8')
const { services, volumes, configs } = parse(text, { merge: true }) as {
  services: Record<string, Service>
  volumes: Record<string, null>
  configs: Record<string, { content: string }>
}
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
const names = Object.keys(services)
const ours = names.filter((name) => services[name]!.image === 'crucible:local')
const workers = ours.filter((name) => services[name]!.command![0] === 'worker')

/** The values of .env as somebody would fill them in. */
const FILLED: Record<string, string> = {
  ...{ POSTGRES_PASSWORD: 'p', S3_ACCESS_KEY: 'k', S3_SECRET_KEY: 's', CRUCIBLE_DATA: '/srv/crucible' },
  ...{ CRUCIBLE_UID: '1000', CRUCIBLE_GID: '1000', USER: 'me' },
}

/** An environment as Compose fills it in. */
function environmentOf(name: string): Record<string, string> {
  const written = Object.entries(services[name]!.environment ?? {})
  return Object.fromEntries(
    written.map(([key, value]) => [
      key,
      String(value).replace(/\$\{(\w+)[^}]*\}/g, (_match, variable: string) => FILLED[variable] ?? ''),
    ]),
  )
}

describe('docker-compose.yml', () => {
  it('has everything that a first deployment needs', () => {
    expect(names).toEqual([
      ...['postgresql', 'temporal-schema', 'temporal', 'temporal-namespace', 'temporal-ui'],
      ...['object-storage', 'orchestrator', 'worker-local', 'crucible'],
    ])
    expect(configs[services['temporal']!.configs![0]!.source]!.content).toContain('frontend.')
  })

  it.each(names)('pins the image: %s', (name) => {
    const { image, build } = services[name]!
    if (build === undefined) expect(image).toMatch(/^[\w./-]+:v?\d+\.\d+(\.\d+)?(-[\w.]+)?$/)
    else expect(image).toBe('crucible:local')
  })

  it('starts nothing before what it needs is ready', () => {
    for (const [name, { depends_on: needs = {} }] of Object.entries(services)) {
      for (const [needed, { condition }] of Object.entries(needs)) {
        const { healthcheck, restart } = services[needed]!
        if (condition === 'service_healthy') expect([name, needed, healthcheck]).not.toContain(undefined)
        else
          expect([name, condition, restart]).toEqual([name, 'service_completed_successfully', 'on-failure:5'])
      }
    }
    expect(Object.keys(services['temporal']!.depends_on!)).toEqual(['temporal-schema'])
    for (const worker of workers)
      expect(Object.keys(services[worker]!.depends_on!)).toEqual(['temporal-namespace'])
  })

  it('brings back what stopped, and looks after the health of what stays', () => {
    const lasting = names.filter((name) => services[name]!.restart === 'unless-stopped')
    expect(lasting).toEqual([
      ...['postgresql', 'temporal', 'temporal-ui', 'object-storage', 'orchestrator', 'worker-local'],
    ])
    for (const name of lasting.filter((one) => one !== 'temporal-ui'))
      expect([name, services[name]!.healthcheck?.test.length]).not.toContain(undefined)
  })

  it('opens ports to this host only: nobody is asked who they are', () => {
    const ports = names.flatMap((name) => services[name]!.ports ?? [])
    expect(ports).toEqual(['127.0.0.1:7233:7233', '127.0.0.1:8080:8080', '127.0.0.1:7070:7070'])
  })

  it('has no password of its own: each comes from .env, and is missed aloud', () => {
    const secret = /PASSWORD|PWD|SECRET|ACCESS_KEY/
    const given = Object.entries(services).flatMap(([name, { environment = {} }]) =>
      Object.entries(environment).filter(([key]) => secret.test(key) && !ours.includes(name)),
    )
    expect(given.length).toBeGreaterThan(3)
    for (const [key, value] of given)
      expect([key, value]).toEqual([key, expect.stringMatching(/^\$\{\w+:\?.+\}$/)])
  })

  it('takes from .env what .env.example explains, and nothing else', () => {
    const wanted = [...text.matchAll(/(?<!\$)\$\{(\w+):\?/g)].map(([, name]) => name!)
    const example = readFileSync(join(ROOT, '.env.example'), 'utf8')
    const offered = [...example.matchAll(/^(\w+)=(.*)$/gm)]
    expect([...new Set(wanted)].sort()).toEqual(offered.map(([, name]) => name!).sort())
    // An example is no default: whoever copies it must fill it in.
    expect(offered.map(([, , value]) => value)).toEqual(offered.map(() => ''))
    for (const file of ['.gitignore', '.dockerignore'])
      expect(readFileSync(join(ROOT, file), 'utf8').split('\n')).toContain('.env')
  })

  it('keeps in volumes what must outlive a container', () => {
    const used = names.flatMap((name) => services[name]!.volumes ?? []).map((volume) => volume.split(':')[0]!)
    expect(new Set(used.filter((one) => /^\w/.test(one)))).toEqual(new Set(Object.keys(volumes)))
  })

  it('registers the search attributes of this version', () => {
    const script = services['temporal-namespace']!.command!.join('\n')
    for (const attribute of Object.values(SEARCH_ATTRIBUTES))
      expect(script).toMatch(new RegExp(`\\b${attribute}\\b`))
  })
})

describe("Crucible's own services", () => {
  it.each(ours)('have settings that Crucible knows, and that are right: %s', (name) => {
    const environment = environmentOf(name)
    const documented = readFileSync(join(ROOT, 'docs', 'configuration.md'), 'utf8')
    for (const variable of Object.keys(environment)) expect(documented).toContain(`| \`${variable}\` |`)
    const config = readWorkerConfig(environment)
    expect(config.temporal.connection.address).toBe('temporal:7233')
    expect(services['temporal']!.ports).toContain('127.0.0.1:7233:7233')
    // Throws unless it is a kind of store that there is.
    expect(config.home.storeUrl).toMatch(/^file:\/\/\/srv\/crucible\//)
    expect(() => openStore(config.home.storeUrl.replace('file:', 'ftp:'))).toThrow('file://')
    expect(readClientConfig(environment).home).toEqual(config.home)
    expect(config.home.secretKeyFile.startsWith('/srv/crucible/')).toBe(true)
    expect([...config.backends.keys()].every((backend) => backend in BACKENDS)).toBe(true)
  })

  it('are workers of every role that the settings name, each once, and the command line', () => {
    const roles = workers.map((name) => services[name]!.command!.slice(1))
    expect(roles.flat().sort()).toEqual(rolesOf(readWorkerConfig(environmentOf('orchestrator'))).sort())
    expect(ours.filter((name) => !workers.includes(name))).toEqual(['crucible'])
    expect(services['crucible']!.profiles).toEqual(['cli'])
  })

  it('share one folder, one user and one store, so that all of them see the same', () => {
    const common = ours.map((name) => {
      const { user, init, volumes: mounts } = services[name]!
      const { CRUCIBLE_STORE, CRUCIBLE_SECRET_KEY_FILE } = environmentOf(name)
      return { user, init, mount: mounts![0], CRUCIBLE_STORE, CRUCIBLE_SECRET_KEY_FILE }
    })
    expect(new Set(common.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(common[0]).toMatchObject({ init: true, mount: expect.stringContaining(':/srv/crucible') })
  })

  it.each(ours)('start a command that there is: %s', (name) => {
    const { command, healthcheck } = services[name]!
    const entry = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)![1]!
    expect(JSON.parse(entry)).toEqual(['node', '/opt/crucible/dist/cli/main.js'])
    const called = [command![0]!, ...(healthcheck === undefined ? [] : [healthcheck.test.at(-1)!])]
    if (healthcheck !== undefined) expect(healthcheck.test.slice(1, 3)).toEqual(JSON.parse(entry))
    for (const word of called.filter((one) => !one.startsWith('--')))
      expect(existsSync(join(ROOT, 'cli', 'commands', `${word}.ts`))).toBe(true)
  })
})

describe('the Dockerfile', () => {
  it('builds on a pinned image with glibc, from the lock file, without the tools of development', () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image!)
    expect(new Set(bases).size).toBe(1)
    expect(bases[0]).toMatch(/^node:20\.\d+\.\d+-bookworm-slim$/)
    expect(dockerfile).toMatch(/npm ci$/m)
    expect(dockerfile).toContain('npm prune --omit=dev')
    expect(dockerfile).toContain('python3')
  })

  it('copies what the installed package has', () => {
    const { files } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] }
    const copied = [...dockerfile.matchAll(/^COPY --from=build \/opt\/crucible\/(\S+)/gm)].map(
      ([, path]) => path!,
    )
    expect(copied).toEqual(['package.json', 'node_modules', 'dist', 'examples'])
    expect(files).toEqual(expect.arrayContaining(['dist', 'examples']))
  })
})

const hasCompose = spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0

describe(
  hasCompose ? 'docker compose' : 'docker compose (not installed here: the checks above are all)',
  () => {
    const test = hasCompose ? it : it.skip
    test('accepts the file with a filled-in .env, and refuses it without', () => {
      const directory = mkdtempSync(join(tmpdir(), 'crucible-compose-'))
      try {
        const filled = join(directory, 'filled')
        writeFileSync(
          filled,
          Object.entries(FILLED)
            .map(([name, value]) => `${name}=${value}\n`)
            .join(''),
        )
        const args = (envFile: string) => [
          'compose',
          '--file',
          FILE,
          '--env-file',
          envFile,
          'config',
          '--quiet',
        ]
        execFileSync('docker', args(filled))
        const refused = spawnSync('docker', args(join(ROOT, '.env.example')), { encoding: 'utf8' })
        expect(refused.status).not.toBe(0)
        expect(refused.stderr).toContain('set it in .env')
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    })
  },
)
