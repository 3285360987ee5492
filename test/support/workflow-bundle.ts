import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { buildWorkflowBundle } from '../../workers/bundle'

const ROOT = join(__dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible')
/** All that workflow code may import (ARCHITECTURE.md), and what says by which packages it is bundled. */
const SOURCES = ['core', 'workflows', 'workers/bundle.ts', 'package-lock.json']
const KEPT_MS = 24 * 3_600_000

let bundled: Promise<{ codePath: string }> | undefined

/** The bundle of the workflows as their sources are now: made by the first process of tests that asks for it, and kept for others. */
export function testWorkflowBundle(): Promise<{ codePath: string }> {
  bundled ??= bundle()
  return bundled
}

async function bundle(): Promise<{ codePath: string }> {
  const codePath = join(CACHE, `workflows-${digestOf(SOURCES)}.js`)
  if (!existsSync(codePath)) {
    mkdirSync(CACHE, { recursive: true })
    removeOld()
    const unfinished = `${codePath}.${process.pid}`
    await buildWorkflowBundle(unfinished)
    renameSync(unfinished, codePath)
  }
  return { codePath }
}

function digestOf(paths: string[]): string {
  const hash = createHash('sha256')
  const visit = (path: string): void => {
    const whole = join(ROOT, path)
    if (statSync(whole).isDirectory()) for (const name of readdirSync(whole).sort()) visit(`${path}/${name}`)
    else hash.update(`${path}\0`).update(readFileSync(whole)).update('\0')
  }
  for (const path of paths) visit(path)
  return hash.digest('hex').slice(0, 16)
}

function removeOld(): void {
  for (const name of readdirSync(CACHE).filter((name) => name.startsWith('workflows-'))) {
    const path = join(CACHE, name)
    if (Date.now() - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { force: true })
  }
}
