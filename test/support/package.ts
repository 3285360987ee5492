import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { cachedBuild } from './cached-build'

const ROOT = join(__dirname, '../..')
const run = promisify(execFile)

/** What npm would publish of this checkout. */
export interface Packed {
  tarball: string
  /** Paths in it. */
  files: string[]
}

/** Packs this checkout, which must be built; as long as nothing changes that it packs, once. */
export async function pack(): Promise<Packed> {
  const { files: listed } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    files: string[]
  }
  const sources = ['package.json', ...listed.filter((path) => !path.startsWith('!'))]
  const tarball = await cachedBuild({
    name: 'package.tgz',
    sources,
    build: async (path) => {
      const folder = mkdtempSync(join(tmpdir(), 'crucible-pack-'))
      const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder]
      const { stdout } = await run('npm', args, { cwd: ROOT, maxBuffer: 64 * 1024 * 1024 })
      const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
      copyFileSync(join(folder, filename), path)
      rmSync(folder, { recursive: true })
    },
  })
  const { stdout } = await run('tar', ['-tzf', tarball])
  const files = stdout.trim().split('\n')
  return { tarball, files: files.map((path) => path.replace(/^package\//, '')) }
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
