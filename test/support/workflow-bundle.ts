import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker'
import { buildWorkflowBundle } from '../../workers/bundle'
import { cachedBuild } from './cached-build'

const ROOT = join(__dirname, '..', '..')
/** All that workflow code may import (ARCHITECTURE.md), and what says by which packages it is bundled. */
const SOURCES = ['core', 'workflows', 'workers/bundle.ts', 'package-lock.json']
/** Hands out the commands of a replayed workflow. */
const CAPTURE = 'test/replay/capture-commands.ts'

let bundled: Promise<{ codePath: string }> | undefined
let capturing: Promise<{ codePath: string }> | undefined

/** The bundle of the workflows as their sources are now. */
export function testWorkflowBundle(): Promise<{ codePath: string }> {
  bundled ??= bundle({ name: 'workflows.js', sources: SOURCES, build: buildWorkflowBundle })
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
  capturing ??= bundle({ name: 'workflows-capturing.js', sources: [...SOURCES, CAPTURE], build })
  return capturing
}

async function bundle(wanted: Parameters<typeof cachedBuild>[0]): Promise<{ codePath: string }> {
  return { codePath: await cachedBuild(wanted) }
}

/**
 * Options of an orchestrator that a test runs in its own process: workflows run in the same thread, because starting one for each
 * of hundreds of workers takes most of the processor time of their tests. Commands start orchestrators with a thread, as always.
 */
export const TEST_WORKER = { shutdownGraceTime: 0, debugMode: true } as const
