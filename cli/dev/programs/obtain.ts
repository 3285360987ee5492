import { resolve } from 'node:path'
import { messageOf } from '../temporal/errors'
import type { Progress } from '../temporal/progress'
import { buildFromModule, moduleFolder } from './build'
import { ProgramCache, type CacheOrigin } from './cache'
import { downloadRelease } from './download'
import { onPath } from './on-path'
import type { Program } from './program'

export interface ObtainOptions {
  /** Crucible's home directory; executables are cached below it. */
  home: string
  /** PATH, and the variables that `go` needs. */
  env: NodeJS.ProcessEnv
  /** The variable that names the only executable to use. */
  variable: string
  progress: Progress
  signal?: AbortSignal | undefined
}

/**
 * An executable of the program: named by the variable, on PATH, in our cache, the official release, or built from its Go module.
 * An unusable executable in the variable is an error. Throws with every way that was tried if none works.
 */
export async function obtain<Version extends { version: string }>(
  program: Program<Version>,
  options: ObtainOptions,
): Promise<string> {
  const { env, variable } = options
  const named = env[variable]
  if (named !== undefined && named !== '') {
    const path = resolve(named)
    await program.askVersion(path).catch((error: unknown) => {
      throw new Error(
        `${variable} names ${path}, which cannot be used: ${messageOf(error)}. Correct it, or unset it so that Crucible installs one.`,
        { cause: error },
      )
    })
    return path
  }
  const tried: string[] = []
  for (const path of onPath(program.name, env)) {
    try {
      const { version } = await program.askVersion(path)
      if (isAtLeast(version, program.version)) return path
      tried.push(`${path} is ${version}, but ${program.version} or newer is required`)
    } catch (error) {
      tried.push(`${path} cannot be used: ${messageOf(error)}`)
    }
  }
  if (tried.length === 0) tried.push(`${program.name} is not on PATH`)
  const cache = new ProgramCache(program, options.home)
  const { executable, remark } = cache.find()
  if (executable !== undefined) return executable.path
  tried.push(remark ?? `the cache at ${cache.path} is empty`)
  try {
    return (await cache.install((path) => produce(program, path, { ...options, tried }), options)).path
  } catch (error) {
    options.signal?.throwIfAborted()
    tried.push(messageOf(error))
  }
  throw new Error(notFound(program, options, tried))
}

async function produce<Version extends { version: string }>(
  program: Program<Version>,
  path: string,
  { env, progress, signal, tried }: ObtainOptions & { tried: string[] },
): Promise<CacheOrigin> {
  const { title } = program
  const release = program.releaseFor(process.platform, process.arch)
  try {
    if (release === undefined)
      throw new Error(`there is no release for ${process.platform} on ${process.arch}`)
    progress.note(`Downloading the ${title} from ${release.url}`)
    await downloadRelease(release, path, { title, progress, signal })
    return 'release'
  } catch (error) {
    signal?.throwIfAborted()
    tried.push(`the download failed: ${messageOf(error)}`)
    progress.note(`${title}: ${tried.at(-1)}`)
  }
  const folder = moduleFolder(__dirname, program.name)
  if (folder === undefined)
    throw new Error(`tools/${program.name}, with its go.mod and go.sum, is missing from the package`)
  progress.note(`Building the ${title} with Go, which takes a few minutes the first time`)
  await buildFromModule(program, { folder, path }, { env, progress, signal })
  return 'go-build'
}

/** Compares the numbers of two versions and ignores suffixes (`-rc.1`). */
function isAtLeast(version: string, wanted: string): boolean {
  const [have, need] = [version, wanted].map((text) =>
    text.split('.').map((part) => Number.parseInt(part, 10)),
  )
  const differs = need!.findIndex((number, index) => number !== have![index])
  return differs === -1 || (have![differs] ?? 0) > need![differs]!
}

function notFound<Version extends { version: string }>(
  { name, title, version }: Program<Version>,
  { home, variable }: ObtainOptions,
  tried: readonly string[],
): string {
  return [
    `No ${title} was found, and none could be installed:`,
    ...tried.map((remark) => `  - ${remark}`),
    'Do one of these:',
    '  - go online and run this again: the release is downloaded once and kept',
    `  - put ${name} ${version} or newer on PATH, or name it in ${variable}`,
    '  - install Go 1.21 or newer (https://go.dev/dl): it is then built here',
    `  - if ${home} is not writable, set CRUCIBLE_HOME to a writable directory`,
  ].join('\n')
}
