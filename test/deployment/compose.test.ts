import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { BACKENDS } from '../../backends/registry'
import { COMMANDS } from '../../cli/program'
import { SEARCH_ATTRIBUTES } from '../../core/queues'
import { readClientConfig } from '../../client/config'
import { openStore } from '../../storage/open-store'
import { readWorkerConfig } from '../../service/config'
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
  depends_on?: Record<string, { condition: string; required?: boolean }>
  secrets?: string[]
  healthcheck?: { test: string[]; start_period?: string }
  restart?: string
  user?: string
  init?: boolean
  profiles?: string[]
}

const ROOT = join(__dirname, '..', '..')
const FILE = join(ROOT, 'docker-compose.yml')
const text = readFileSync(FILE, 'utf8')
const { services, volumes, configs, secrets } = parse(text, { merge: true }) as {
  services: Record<string, Service>
  volumes: Record<string, null>
  configs: Record<string, { content: string }>
  secrets: Record<string, { file: string }>
}
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
const names = Object.keys(services)
const ours = names.filter((name) => services[name]!.image === 'crucible:local')
const workers = ours.filter((name) => services[name]!.command![0] === 'worker')

/** The values of .env as somebody would fill them in. */
const FILLED: Record<string, string> = {
  CRUCIBLE_DATA: '/srv/crucible',
  CRUCIBLE_UID: '1000',
  CRUCIBLE_GID: '1000',
  USER: 'me',
}

/** An environment as Compose fills it in, with files that exist here in place of mounted secrets. */
function environmentOf(name: string, filled = FILLED): Record<string, string> {
  const written = Object.entries(services[name]!.environment ?? {})
  const variable = /\$\{(\w+)(?:(:?-|:\?)([^}]*))?\}/g
  const fill = (_match: string, key: string, kind = '', text = ''): string =>
    filled[key] || (kind === ':-' || (kind === '-' && filled[key] === undefined) ? text : '')
  return Object.fromEntries(
    written.map(([key, value]) => {
      const text = String(value).replace(variable, fill)
      return [key, text.startsWith('/run/secrets/') ? CREDENTIALS : text]
    }),
  )
}

const folder = mkdtempSync(join(tmpdir(), 'crucible-secrets-'))
const CREDENTIALS = join(folder, 'aws-credentials')
writeFileSync(CREDENTIALS, '[default]\naws_access_key_id = crucible\naws_secret_access_key = s\n')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('docker-compose.yml', () => {
  it('has every service that a team needs', () => {
    expect(names).toEqual([
      'postgresql',
      'temporal-schema',
      'temporal',
      'temporal-namespace',
      'temporal-ui',
      'object-storage',
      'orchestrator',
      'worker-local',
      'worker-ec2',
      'crucible',
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
      for (const [needed, { condition, required = true }] of Object.entries(needs)) {
        const { healthcheck, restart, profiles } = services[needed]!
        // Compose refuses to start a service that requires one of a profile that is off.
        expect([name, needed, required]).toEqual([name, needed, profiles === undefined])
        if (condition === 'service_healthy') expect([name, needed, healthcheck]).not.toContain(undefined)
        else
          expect([name, condition, restart]).toEqual([name, 'service_completed_successfully', 'on-failure:5'])
      }
    }
    expect(Object.keys(services['temporal']!.depends_on!)).toEqual(['temporal-schema'])
    for (const worker of workers)
      expect(Object.keys(services[worker]!.depends_on!)).toEqual(['temporal-namespace', 'object-storage'])
  })

  it('brings back what stopped, and looks after the health of what stays', () => {
    const lasting = names.filter((name) => services[name]!.restart === 'unless-stopped')
    expect(lasting).toEqual([
      'postgresql',
      'temporal',
      'temporal-ui',
      'object-storage',
      'orchestrator',
      'worker-local',
      'worker-ec2',
    ])
    for (const name of lasting.filter((one) => one !== 'temporal-ui'))
      expect([name, services[name]!.healthcheck?.test.length]).not.toContain(undefined)
  })

  it('opens ports to this host only, because clients do not log in', () => {
    const ports = names.flatMap((name) => services[name]!.ports ?? [])
    expect(ports).toEqual(['127.0.0.1:7233:7233', '127.0.0.1:8080:8080', '127.0.0.1:7070:7070'])
  })

  it('reads every password and key from a mounted file, never from .env or the environment', () => {
    const files = Object.values(secrets).map(({ file }) => file)
    expect(files).toEqual(['./secrets/postgres-password', './secrets/aws-credentials'])
    const isSecret = /PASSWORD|PWD|SECRET|ACCESS_KEY|CREDENTIALS/
    for (const [name, { environment = {}, secrets: mounted = [] }] of Object.entries(services)) {
      for (const [key, value] of Object.entries(environment).filter(([key]) => isSecret.test(key)))
        expect([name, key, value]).toEqual([
          name,
          key,
          expect.stringMatching(/\/run\/secrets\/|secret\.key$/),
        ])
      const script = JSON.stringify(services[name])
      const used = [...script.matchAll(/\/run\/secrets\/(\w+)/g)].map(([, secret]) => secret!)
      expect([name, [...new Set(used)]]).toEqual([name, mounted])
    }
    for (const ignored of ['.gitignore', '.dockerignore'])
      expect(readFileSync(join(ROOT, ignored), 'utf8')).toMatch(/^\/?secrets\/?$/m)
  })

  it('takes from .env what .env.example explains, and refuses to start without the required values', () => {
    const required = [...text.matchAll(/(?<!\$)\$\{(\w+):\?/g)].map(([, name]) => name!)
    const optional = [...text.matchAll(/(?<!\$)\$\{((?:CRUCIBLE|AWS)_\w+):?-/g)].map(([, name]) => name!)
    const example = readFileSync(join(ROOT, '.env.example'), 'utf8')
    const empty = [...example.matchAll(/^(\w+)=$/gm)].map(([, name]) => name!)
    expect([...new Set(required)].sort()).toEqual(empty.sort())
    const offered = [...example.matchAll(/^#?(\w+)=/gm)].map(([, name]) => name!)
    expect(offered).toEqual(expect.arrayContaining(optional))
    for (const file of ['.gitignore', '.dockerignore'])
      expect(readFileSync(join(ROOT, file), 'utf8').split('\n')).toContain('.env')
  })

  it('has a profile for each optional service that .env.example names', () => {
    const profiles = names.flatMap((name) => services[name]!.profiles ?? [])
    expect(profiles).toEqual(['object-storage', 'ec2', 'cli'])
    expect(readFileSync(join(ROOT, '.env.example'), 'utf8')).toMatch(/^COMPOSE_PROFILES=object-storage$/m)
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
    const documented = readFileSync(join(ROOT, 'docs', 'reference', 'configuration.md'), 'utf8')
    for (const variable of Object.keys(environment)) expect(documented).toContain(`| \`${variable}\` |`)
    const config = readWorkerConfig(environment)
    expect(config.temporal.connection.address).toBe('temporal:7233')
    expect(services['temporal']!.ports).toContain('127.0.0.1:7233:7233')
    expect(config.home.storeUrl).toBe('s3://crucible?endpoint=http://object-storage:7070')
    expect(() => openStore(config.home.storeUrl)).not.toThrow()
    expect(config.grants).toEqual({ keys: { keyId: 'crucible', secret: 's' } })
    const own = {
      ...FILLED,
      CRUCIBLE_STORE: 's3://bucket/prefix',
      CRUCIBLE_GRANT_CREDENTIALS_FILE: '',
      CRUCIBLE_BACKENDS: 'local,ec2',
      AWS_REGION: 'eu-west-1',
    }
    const role = 'arn:aws:iam::123456789012:role/crucible-grant'
    const enabled = readWorkerConfig({ ...environmentOf(name, own), CRUCIBLE_GRANT_ROLE: role })
    expect([enabled.home.storeUrl, enabled.grants]).toEqual(['s3://bucket/prefix', { roleArn: role }])
    expect([...enabled.backends.keys()]).toEqual(['local', 'ec2'])
    expect(readClientConfig(environment).home).toEqual(config.home)
    expect(config.home.secretKeyFile.startsWith('/srv/crucible/')).toBe(true)
    expect([...config.backends.keys()].every((backend) => backend in BACKENDS)).toBe(true)
  })

  it('are a worker for each role, and the command line', () => {
    const everyBackend = environmentOf('orchestrator', { ...FILLED, CRUCIBLE_BACKENDS: 'local,ec2' })
    const roles = workers.map((name) => services[name]!.command!.slice(1))
    expect(roles.flat().sort()).toEqual(rolesOf(readWorkerConfig(everyBackend)).sort())
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

  it.each(ours)('start an existing command: %s', (name) => {
    const { command, healthcheck } = services[name]!
    const entry = /^ENTRYPOINT (\[.*\])$/m.exec(dockerfile)![1]!
    expect(JSON.parse(entry)).toEqual(['node', '/opt/crucible/dist/cli/main.js'])
    const called = [command![0]!, ...(healthcheck === undefined ? [] : [healthcheck.test.at(-1)!])]
    if (healthcheck !== undefined) expect(healthcheck.test.slice(1, 3)).toEqual(JSON.parse(entry))
    for (const word of called.filter((one) => !one.startsWith('--')))
      expect(COMMANDS.some(({ name }) => name === word)).toBe(true)
  })
})

describe('the Dockerfile', () => {
  it('builds on a pinned image with glibc, from the lock file, without the tools of development', () => {
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image!)
    expect(new Set(bases).size).toBe(1)
    expect(bases[0]).toMatch(/^node:24\.\d+\.\d+-bookworm-slim$/)
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

/** Programs that read the file as it is used; podman-compose comes from PyPI. */
const READERS = [['docker', 'compose'], ['podman-compose']] as const

describe.each(READERS)('%s', (program, ...subcommand) => {
  const isInstalled = spawnSync(program, [...subcommand, 'version'], { stdio: 'ignore' }).status === 0
  const test = isInstalled ? it : it.skip
  const title = 'accepts the file with a filled-in .env, and refuses it without'
  test(
    isInstalled ? title : `${title} (skipped: ${program} ${subcommand.join(' ')} is not installed)`,
    () => {
      const filled = join(folder, 'filled')
      writeFileSync(
        filled,
        Object.entries({ ...FILLED, COMPOSE_PROFILES: 'object-storage,ec2' })
          .map((each) => `${each.join('=')}\n`)
          .join(''),
      )
      const read = (envFile: string) =>
        spawnSync(program, [...subcommand, '--file', FILE, '--env-file', envFile, 'config', '--quiet'], {
          encoding: 'utf8',
        })
      const accepted = read(filled)
      expect([accepted.status, accepted.stderr]).toEqual([0, expect.any(String)])
      const refused = read(join(ROOT, '.env.example'))
      expect(refused.status).not.toBe(0)
      expect(refused.stderr).toContain('set it in .env')
    },
  )
})
