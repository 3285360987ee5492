import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { buildWorkflowBundle } from '../../workers/bundle'

const ROOT = join(__dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'crucible')
/** All that workflow code may import (ARCHITECTURE.md), and what says by which packages it is bundled. */
const SOURCES = ['core', 'workflows', 'workers/bundle.ts', 'package-lock.json']
/** Hands out the commands of a replayed workflow. */
const CAPTURE = 'test/replay/capture-commands.ts'
const KEPT_MS = 24 * 3_600_000

let bundled: Promise<{ codePath: string }> | undefined
let capturing: Promise<{ codePath: string }> | undefined

/** The bundle of the workflows as their sources are now: made by the first process of tests that asks for it, and kept for others. */
export function testWorkflowBundle(): Promise<{ codePath: string }> {
  bundled ??= bundle({ name: 'workflows', sources: SOURCES, build: buildWorkflowBundle })
  return bundled
}

/** The same workflows, for a replay that looks at the inputs of their commands. */
export function capturingWorkflowBundle(): Promise<{ codePath: string }> {
  const build = async (path: string): Promise<void> => {
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(ROOT, 'workflows', 'index.ts'),
      workflowInterceptorModules: [join(ROOT, 'workflows', 'interceptors.ts'), join(ROOT, CAPTURE)],
      logger: new DefaultLogger('WARN'),
    })
    writeFileSync(path, code)
  }
  capturing ??= bundle({ name: 'workflows-capturing', sources: [...SOURCES, CAPTURE], build })
  return capturing
}

interface Wanted {
  name: string
  sources: string[]
  build: (path: string) => Promise<void>
}

async function bundle({ name, sources, build }: Wanted): Promise<{ codePath: string }> {
  const codePath = join(CACHE, `${name}-${digestOf(sources)}.js`)
  if (!existsSync(codePath)) {
    mkdirSync(CACHE, { recursive: true })
    removeOld()
    const unfinished = `${codePath}.${process.pid}`
    await build(unfinished)
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
