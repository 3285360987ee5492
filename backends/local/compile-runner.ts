import { readFile, rm, writeFile } from 'node:fs/promises'
import { SECOND_MS } from '../../core/time/time'
import type { Host } from './host'
import { runProgram } from './programs'

const COMPILE_TIMEOUT_MS = 30 * SECOND_MS

/**
 * Adds compiled modules to an archive. They carry no time stamps; another version of Python ignores them and reads the sources.
 * @internal Tests start runners that are compiled in the same way.
 */
export const COMPILE_RUNNER = `
import compileall, py_compile, sys, tempfile, zipapp, zipfile
source, target = sys.argv[1:]
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
with tempfile.TemporaryDirectory() as folder:
    zipfile.ZipFile(source).extractall(folder)
    if not compileall.compile_dir(folder, quiet=2, legacy=True, invalidation_mode=mode):
        sys.exit("a module cannot be compiled")
    zipapp.create_archive(folder, target, compressed=True)
`

/** The last program that was compiled, for one Python; without a program if that failed. */
let last: { key: string; program: Buffer | undefined } | undefined

/**
 * Replaces a verified runner program by one with compiled modules, whose start takes half the processor time. It is compiled once for each
 * worker and kept in memory, where no job can change it. If that fails, the program stays unchanged.
 */
export async function compileRunner(
  host: Host,
  { sha256, path, signal }: { sha256: string; path: string; signal: AbortSignal },
): Promise<void> {
  const python = await host.python(signal)
  const key = `${sha256} ${python}`
  const compiled = await host.exclusive('compile-runner', signal, async () => {
    if (last?.key === key) return last.program
    const program = await compile(host, { python, path, signal })
    last = { key, program }
    return program
  })
  if (compiled !== undefined) await writeFile(path, compiled)
}

async function compile(
  host: Host,
  { python, path, signal }: { python: string; path: string; signal: AbortSignal },
): Promise<Buffer | undefined> {
  const target = `${path}.compiled`
  const answer = await runProgram(python, ['-IS', '-c', COMPILE_RUNNER, path, target], {
    env: host.config.environment,
    timeoutMs: COMPILE_TIMEOUT_MS,
    signal,
  })
  const program = answer.kind === 'answered' ? await readFile(target) : undefined
  await rm(target, { force: true })
  return program
}
