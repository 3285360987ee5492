import { resolve } from 'node:path'
import { addressFrom, checkAnswers, type TemporalAddress } from './address'
import { onPath } from '../programs/on-path'
import { buildFromModule, moduleFolder } from '../programs/build'
import { downloadRelease } from '../programs/download'
import { cachedPath, findCached, installIntoCache, type CachedExecutable, type CacheOrigin } from './cache'
import { messageOf, TemporalServerError } from './errors'
import { releaseFor, TEMPORAL } from './program'
import type { Progress } from './progress'
import {
  askVersion,
  isServerNewEnough,
  MIN_SERVER_VERSION,
  TEMPORAL_CLI_VERSION,
  type TemporalVersion,
} from './version'

/** An executable of the Temporal CLI that can start a dev server. */
export interface TemporalExecutable extends TemporalVersion {
  kind: 'executable'
  path: string
  /** `environment`: named by CRUCIBLE_TEMPORAL_CLI. `download` and `build` were just added to the cache. */
  source: 'environment' | 'path' | 'cache' | 'download' | 'build'
}

export interface ResolveOptions {
  /** Crucible's home directory; executables are cached below it. */
  home: string
  /** The environment: TEMPORAL_*, CRUCIBLE_TEMPORAL_CLI, PATH, and the variables that `go` needs. */
  env: NodeJS.ProcessEnv
  progress: Progress
  signal?: AbortSignal | undefined
  probes?: Partial<Probes>
}

/** Effects on the outside, each replaceable. A failed one throws the reason. */
export interface Probes {
  address(env: NodeJS.ProcessEnv): TemporalAddress | undefined
  checkAnswers(address: TemporalAddress): Promise<void>
  /** The executable files named `temporal` on PATH, in its order. */
  onPath(env: NodeJS.ProcessEnv): string[]
  version(path: string): Promise<TemporalVersion>
  cached(home: string): { executable?: CachedExecutable; remark?: string }
  install(
    home: string,
    produce: (path: string) => Promise<CacheOrigin>,
    options: ResolveOptions,
  ): Promise<CachedExecutable>
  download(path: string, options: ResolveOptions): Promise<void>
  build(path: string, options: ResolveOptions): Promise<void>
}

const PROBES: Probes = {
  address: addressFrom,
  checkAnswers,
  onPath: (env) => onPath(TEMPORAL.name, env),
  version: askVersion,
  cached: findCached,
  install: installIntoCache,
  async download(path, { progress, signal }) {
    const release = releaseFor(process.platform, process.arch)
    if (release === undefined)
      throw new Error(`there is no release for ${process.platform} on ${process.arch}`)
    progress.note(`Downloading the Temporal server from ${release.url}`)
    await downloadRelease(release, path, { title: TEMPORAL.title, progress, signal })
  },
  async build(path, { env, progress, signal }) {
    const folder = moduleFolder(__dirname, TEMPORAL.name)
    if (folder === undefined)
      throw new Error('tools/temporal, with its go.mod and go.sum, is missing from the package')
    progress.note('Building the Temporal server with Go, which takes a few minutes the first time')
    await buildFromModule(TEMPORAL, { folder, path }, { env, progress, signal })
  },
}

/**
 * The Temporal server to use: an address in the environment, an executable named by the environment, `temporal` on PATH, our
 * cache, the official release, or a build from its Go module. A setting in the environment that cannot be used is an error.
 */
export async function resolveTemporal(
  options: ResolveOptions,
): Promise<TemporalAddress | TemporalExecutable> {
  const probes = { ...PROBES, ...options.probes }
  const address = probes.address(options.env)
  if (address === undefined) return resolveExecutable(options)
  await probes.checkAnswers(address)
  return address
}

/** Resolves an executable as `resolveTemporal` does, for callers that need a separate server. Only the last two ways use the network. */
export async function resolveExecutable(options: ResolveOptions): Promise<TemporalExecutable> {
  const probes = { ...PROBES, ...options.probes }
  const tried: string[] = []
  const search: Search = {
    probes,
    absent: (remark) => tried.push(remark),
    passOver(remark) {
      tried.push(remark)
      options.progress.note(`Temporal server: ${remark}`)
    },
  }
  const found =
    (await named(options.env, probes)) ??
    (await fromPath(options.env, search)) ??
    fromCache(options.home, search) ??
    (await install(options, search))
  if (found !== undefined) return found
  throw new TemporalServerError('not-found', notFound(options.home, tried))
}

interface Search {
  probes: Probes
  /** A source that is missing, as on most machines: reported only if every source fails. */
  absent: (remark: string) => void
  /** A source that should have worked: reported immediately. */
  passOver: (remark: string) => void
}

async function named(env: NodeJS.ProcessEnv, probes: Probes): Promise<TemporalExecutable | undefined> {
  const value = env['CRUCIBLE_TEMPORAL_CLI']
  if (value === undefined || value === '') return undefined
  // The server starts with a different PATH, so relative paths are resolved here.
  const path = resolve(value)
  const remedy = 'Correct CRUCIBLE_TEMPORAL_CLI, or unset it so that Crucible finds or installs one.'
  let version: TemporalVersion
  try {
    version = await probes.version(path)
  } catch (error) {
    const message = `CRUCIBLE_TEMPORAL_CLI names ${path}, which cannot be used: ${messageOf(error)}. ${remedy}`
    throw new TemporalServerError('configuration', message, { cause: error })
  }
  if (isServerNewEnough(version.serverVersion))
    return { kind: 'executable', path, source: 'environment', ...version }
  const message = `CRUCIBLE_TEMPORAL_CLI names ${path}, which is too old: ${tooOld(version)}. ${remedy}`
  throw new TemporalServerError('configuration', message)
}

async function fromPath(
  env: NodeJS.ProcessEnv,
  { probes, absent, passOver }: Search,
): Promise<TemporalExecutable | undefined> {
  const paths = probes.onPath(env)
  if (paths.length === 0) absent('temporal is not on PATH')
  for (const path of paths) {
    try {
      const version = await probes.version(path)
      if (isServerNewEnough(version.serverVersion))
        return { kind: 'executable', path, source: 'path', ...version }
      passOver(`${path} is too old: ${tooOld(version)}`)
    } catch (error) {
      passOver(`${path} cannot be used: ${messageOf(error)}`)
    }
  }
  return undefined
}

function fromCache(home: string, { probes, absent, passOver }: Search): TemporalExecutable | undefined {
  const { executable, remark } = probes.cached(home)
  if (executable !== undefined) return asExecutable(executable, 'cache')
  if (remark === undefined) absent(`the cache at ${cachedPath(home)} is empty`)
  else passOver(remark)
  return undefined
}

async function install(
  options: ResolveOptions,
  { probes, passOver }: Search,
): Promise<TemporalExecutable | undefined> {
  let source: TemporalExecutable['source'] = 'cache'
  const produce = async (path: string): Promise<CacheOrigin> => {
    try {
      await probes.download(path, options)
      source = 'download'
      return 'release'
    } catch (error) {
      options.signal?.throwIfAborted()
      passOver(`the download failed: ${messageOf(error)}`)
    }
    await probes.build(path, options)
    source = 'build'
    return 'go-build'
  }
  try {
    const installed = await probes.install(options.home, produce, options)
    options.progress.note(`Temporal server ${installed.version} is ready at ${installed.path}`)
    return asExecutable(installed, source)
  } catch (error) {
    options.signal?.throwIfAborted()
    passOver(`it could not be installed: ${messageOf(error)}`)
    return undefined
  }
}

function asExecutable(
  { path, version, serverVersion }: CachedExecutable,
  source: TemporalExecutable['source'],
): TemporalExecutable {
  return { kind: 'executable', path, version, serverVersion, source }
}

function tooOld({ version, serverVersion }: TemporalVersion): string {
  return `its server is ${serverVersion} (CLI ${version}), but ${MIN_SERVER_VERSION} or newer is required`
}

function notFound(home: string, tried: readonly string[]): string {
  return [
    'No Temporal server was found, and none could be installed:',
    ...tried.map((remark) => `  - ${remark}`),
    'Do one of these:',
    '  - go online and run this again: the release is downloaded once and kept',
    `  - put the Temporal CLI ${TEMPORAL_CLI_VERSION} or newer on PATH (macOS: brew install temporal; otherwise`,
    '    https://github.com/temporalio/cli/releases), or name it in CRUCIBLE_TEMPORAL_CLI',
    '  - install Go 1.21 or newer (https://go.dev/dl): it is then built here',
    '  - set TEMPORAL_ADDRESS to a Temporal server that already runs',
    `  - if ${home} is not writable, set CRUCIBLE_HOME to a writable directory`,
  ].join('\n')
}
