import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(__dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible')
const KEPT_MS = 24 * 3_600_000

/** What programs write for themselves, at any moment. */
const IGNORED = /^__pycache__$|\.cache$/

export interface CachedBuild {
  /** Of the kept file, with its extension. */
  name: `${string}.${string}`
  /** Files and folders from the root whose contents decide what is built. */
  sources: readonly string[]
  /** Writes the file. */
  build: (path: string) => Promise<void> | void
}

/** The path of a file that tests need often: made by the first process of tests that asks for it, and kept while its sources stay as they are. */
export async function cachedBuild({ name, sources, build }: CachedBuild): Promise<string> {
  const [stem, extension] = name.split('.') as [string, string]
  const path = join(CACHE, `${stem}-${digestOf(sources)}.${extension}`)
  if (!existsSync(path)) {
    mkdirSync(CACHE, { recursive: true })
    removeOld(stem)
    const unfinished = `${path}.${process.pid}`
    await build(unfinished)
    renameSync(unfinished, path)
  }
  return path
}

function digestOf(paths: readonly string[]): string {
  const hash = createHash('sha256')
  const visit = (path: string): void => {
    const whole = join(ROOT, path)
    if (!statSync(whole).isDirectory()) hash.update(`${path}\0`).update(readFileSync(whole)).update('\0')
    else for (const name of readdirSync(whole).sort()) if (!IGNORED.test(name)) visit(`${path}/${name}`)
  }
  for (const path of paths) visit(path)
  return hash.digest('hex').slice(0, 16)
}

function removeOld(stem: string): void {
  for (const name of readdirSync(CACHE).filter((name) => name.startsWith(`${stem}-`))) {
    const path = join(CACHE, name)
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { force: true })
  }
}
