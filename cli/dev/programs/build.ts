import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { limitedTo } from '../../../backends/calls'
import { formatDuration } from '../../../core/time/time'
import type { Progress } from '../temporal/progress'
import type { GoBuild } from './program'

/** The first Go version that downloads the newer toolchain that a module requires. */
const MIN_GO = '1.21'

/** Limit on a build. A clean one takes six minutes on two cores; a slow machine with a slow network gets five times that. */
const BUILD_LIMIT_MS = 30 * 60_000
const UPDATE_EVERY_MS = 1_000
const KEPT_LINES = 15

export interface BuildOptions {
  /** The `go` to use, and the environment that it needs: PATH, HOME, its caches and proxies. */
  env: NodeJS.ProcessEnv
  progress: Progress
  signal?: AbortSignal | undefined
}

/** The folder `tools/<name>` with `go.mod` and `go.sum`, found from any folder of the checkout or of the installed package. */
export function moduleFolder(from: string, name: string): string | undefined {
  if (!existsSync(join(from, 'package.json'))) {
    return dirname(from) === from ? undefined : moduleFolder(dirname(from), name)
  }
  const folder = join(from, 'tools', name)
  return existsSync(join(folder, 'go.sum')) ? folder : undefined
}

/** Builds a program from its committed Go module in `folder` and puts the executable at `path`. */
export async function buildFromModule(
  { title, build }: { title: string; build: GoBuild },
  { folder, path }: { folder: string; path: string },
  options: BuildOptions,
): Promise<void> {
  await checkGo(options)
  // Go sometimes writes next to go.mod, and the package may be installed in a read-only folder.
  const copy = mkdtempSync(join(tmpdir(), 'crucible-build-'))
  try {
    cpSync(folder, copy, { recursive: true })
    const flags = `-s -w ${build.linkerFlags}`
    const args = ['-mod=readonly', '-buildvcs=false', '-trimpath', '-v', '-ldflags', flags, '-o', path]
    await runGo(['build', ...args, build.package], copy, { ...options, title })
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

async function checkGo(options: BuildOptions): Promise<void> {
  const quiet = { ...options, title: '', progress: { note: () => {}, update: () => {} } }
  // Anyone can put a go.mod into the folder for temporary files.
  const version = await runGo(['env', 'GOVERSION'], dirname(process.execPath), quiet)
  const [major = 0, minor = 0] = version
    .replace(/^go/, '')
    .split('.')
    .map((part) => Number.parseInt(part, 10))
  if (major < 1 || (major === 1 && minor < Number(MIN_GO.split('.')[1]))) {
    throw new Error(`it needs Go ${MIN_GO} or newer, but PATH has ${version.trim()}`)
  }
}

/** Runs `go` to its end and returns its output; throws with the last lines if it fails. */
function runGo(
  args: readonly string[],
  cwd: string,
  options: BuildOptions & { title: string },
): Promise<string> {
  const { env, progress, signal, title } = options
  return new Promise((resolve, reject) => {
    const go = spawn('go', args, {
      cwd,
      // The user's own flags and workspace are for the user's own modules only.
      env: { ...env, CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' },
      stdio: ['ignore', 'pipe', 'pipe'],
      signal: limitedTo(BUILD_LIMIT_MS, signal),
    })
    const startedAtMs = performance.now()
    let output = ''
    let steps = 0
    const tell = setInterval(() => {
      const elapsed = formatDuration(Math.round((performance.now() - startedAtMs) / 1000) * 1000)
      progress.update(`Building the ${title} (a few minutes the first time): ${elapsed}, ${steps} steps done`)
    }, UPDATE_EVERY_MS)
    const take = (chunk: string): void => {
      output += chunk
      steps += chunk.split('\n').length - 1
    }
    go.stdout.setEncoding('utf8').on('data', take)
    go.stderr.setEncoding('utf8').on('data', take)
    go.on('error', (error) => {
      clearInterval(tell)
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT'
      reject(isMissing ? new Error('go is not on PATH') : error)
    })
    go.on('close', (code) => {
      clearInterval(tell)
      if (code === 0) resolve(output)
      else
        reject(
          new Error(`go ${args[0]} failed:\n${output.trimEnd().split('\n').slice(-KEPT_LINES).join('\n')}`),
        )
    })
  })
}
