import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { buildWorkflowBundle } from '../../workers/bundle'
import { cachedBuild, type CachedBuild } from './cached-build'

const ROOT = join(__dirname, '..', '..')
/** All that workflow code may import (ARCHITECTURE.md), and what says by which packages it is bundled. */
const SOURCES = [
  'core',
  'workflows',
  'workers/bundle.ts',
  'package-lock.json',
  'test/support/workflow-bundle.ts',
]
/** Hands out the commands of a replayed workflow. */
const CAPTURE = 'test/replay/capture-commands.ts'
/** Ends the waits of a workflow when a driven clock has come so far. */
const WAKING = 'test/quarters/waking.ts'
/** Before the source map at the end of a bundle. */
const MAP_PREFIX = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,'

let bundled: Promise<{ codePath: string }> | undefined
let capturing: Promise<{ codePath: string }> | undefined
let waking: Promise<{ codePath: string }> | undefined

/** The bundle of the workflows as their sources are now. */
export function testWorkflowBundle(): Promise<{ codePath: string }> {
  bundled ??= bundle({ name: 'workflows.js', sources: SOURCES, build: buildWorkflowBundle })
  return bundled
}

/** The same workflows, for a replay that looks at the inputs of their commands. */
export function capturingWorkflowBundle(): Promise<{ codePath: string }> {
  capturing ??= bundleWith(CAPTURE, 'workflows-capturing.js')
  return capturing
}

/** The same workflows, whose waits a driven clock ends. */
export function wakingWorkflowBundle(): Promise<{ codePath: string }> {
  waking ??= bundleWith(WAKING, 'workflows-waking.js')
  return waking
}

/** The workflows with one more module of interceptors. */
function bundleWith(module: string, name: `${string}.js`): Promise<{ codePath: string }> {
  const build = async (path: string): Promise<void> => {
    const { code } = await bundleWorkflowCode({
      workflowsPath: join(ROOT, 'workflows', 'index.ts'),
      workflowInterceptorModules: [join(ROOT, 'workflows', 'interceptors.ts'), join(ROOT, module)],
      logger: new DefaultLogger('WARN'),
    })
    writeFileSync(path, code)
  }
  return bundle({ name, sources: [...SOURCES, module], build })
}

async function bundle(wanted: CachedBuild): Promise<{ codePath: string }> {
  const build = async (path: string): Promise<void> => {
    await wanted.build(path)
    writeFileSync(path, withLeanMap(readFileSync(path, 'utf8')))
  }
  return { codePath: await cachedBuild({ ...wanted, build }) }
}

/** Without the sources, which are most of the source map that each worker reads. */
function withLeanMap(code: string): string {
  const at = code.lastIndexOf(MAP_PREFIX) + MAP_PREFIX.length
  const map = JSON.parse(Buffer.from(code.slice(at), 'base64').toString()) as object
  return (
    code.slice(0, at) + Buffer.from(JSON.stringify({ ...map, sourcesContent: undefined })).toString('base64')
  )
}

/**
 * Options of an orchestrator that a test runs in its own process: workflows run in the same thread, because starting one for each
 * of hundreds of workers takes most of the processor time of their tests. Commands start orchestrators with a thread, as always.
 */
export const TEST_WORKER = { shutdownGraceTime: 0, debugMode: true, buildId: 'test' } as const
