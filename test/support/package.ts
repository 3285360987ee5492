import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const ROOT = join(__dirname, '../..')
const run = promisify(execFile)

/** What npm would publish of this checkout. */
export interface Packed {
  tarball: string
  /** Paths in it. */
  files: string[]
}

/** Packs this checkout, which must be built. */
export async function pack(folder: string): Promise<Packed> {
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
  const { stdout } = await run('npm', args, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 })
  const [{ filename, files }] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }]
  return { tarball: join(folder, filename), files: files.map(({ path }) => path) }
}

/**
 * Installs a package into `folder/node_modules` as npm does, with the dependencies of this checkout: it needs no network.
 *
 * @returns the package's folder
 */
export async function install(tarball: string, folder: string): Promise<string> {
  const modules = join(folder, 'node_modules')
  const installed = join(modules, 'crucible-ml')
  mkdirSync(installed, { recursive: true })
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])
  linkDependencies(modules)
  return installed
}

/** Every package that the lock has at the top, linked where Node looks for it. */
function linkDependencies(modules: string): void {
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    // The small cloud is in the product's own dist/, not in the registry.
    if (name.startsWith('.') || name === 'crucible-small-cloud') continue
    const inner = name.startsWith('@')
      ? readdirSync(join(ROOT, 'node_modules', name)).map((each) => join(name, each))
      : [name]
    for (const each of inner) {
      mkdirSync(dirname(join(modules, each)), { recursive: true })
      symlinkSync(join(ROOT, 'node_modules', each), join(modules, each))
    }
  }
}
