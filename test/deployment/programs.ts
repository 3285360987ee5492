import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { buildFromModule, moduleFolder } from '../../cli/dev/programs/build'
import { progressOn } from '../../cli/dev/temporal/progress'
import { resolveExecutable } from '../../cli/dev/temporal/resolve'
import { testVersitygw } from '../support/s3'

/** The version of the server image in docker-compose.yml; `tools/temporal-server/go.mod` names the same. */
export const SERVER_VERSION = '1.32.0'
const SERVER_PROGRAMS = {
  'temporal-server': 'go.temporal.io/server/cmd/server',
  'temporal-sql-tool': 'go.temporal.io/server/cmd/tools/sql',
} as const

export interface Programs {
  /** Folder with `postgres`, `initdb`, `pg_dump` and their like. */
  postgresql: string
  /** Folder with `temporal-server` and `temporal-sql-tool`. */
  server: string
  temporal: string
  versitygw: string
}

const home = (): string => process.env['CRUCIBLE_HOME'] ?? join(homedir(), '.crucible')
const serverFolder = (): string => join(home(), 'cache', 'temporal-server', SERVER_VERSION)

/** Why the deployment cannot run on this machine now; `undefined` when it can. Downloads and builds nothing. */
function missingProgram(): string | undefined {
  if (process.platform !== 'linux') return 'it reads /proc, which only Linux has'
  if (postgresqlFolder() === undefined)
    return 'PostgreSQL is not installed (Debian: apt-get install postgresql)'
  const absent = Object.keys(SERVER_PROGRAMS).find((name) => !existsSync(join(serverFolder(), name)))
  return absent === undefined ? undefined : `${absent} is not built yet: npm run proof -- deployment`
}

/** Finds every program, and builds the Temporal server with Go where it is not in the cache yet. */
export async function findPrograms(): Promise<Programs> {
  const progress = progressOn(process.stderr, Date.now)
  for (const [name, path] of Object.entries(SERVER_PROGRAMS)) {
    const to = join(serverFolder(), name)
    if (existsSync(to)) continue
    mkdirSync(serverFolder(), { recursive: true })
    const build = { package: path, linkerFlags: '' }
    const options = { folder: moduleFolder(__dirname, 'temporal-server')!, path: `${to}.new` }
    await buildFromModule({ title: name, build }, options, { env: process.env, progress })
    renameSync(`${to}.new`, to)
  }
  const reason = missingProgram()
  if (reason !== undefined) throw new Error(`The deployment cannot run here: ${reason}.`)
  const { path: temporal } = await resolveExecutable({ home: home(), env: process.env, progress })
  return {
    postgresql: postgresqlFolder()!,
    server: serverFolder(),
    temporal,
    versitygw: await testVersitygw(),
  }
}

/** Debian keeps the server's programs outside PATH, one folder for each major version. */
function postgresqlFolder(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...versions.map((version) => join(debian, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ]
  return folders.find((each) =>
    ['postgres', 'initdb', 'pg_dump'].every((name) => existsSync(join(each, name))),
  )
}
