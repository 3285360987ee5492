import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleWorkflowCode, type WorkflowBundleOption } from '@temporalio/worker'

const BUNDLE_NAME = 'workflow-bundle.js'

/** Bundles the workflows into one file, as the build does; fails when anything forbidden leaks into them. */
export async function buildWorkflowBundle(outFile: string): Promise<void> {
  const { code } = await bundleWorkflowCode({ workflowsPath: workflowsPath() })
  await writeFile(outFile, code)
}

/** The bundle made by the build; from sources, where there is none, it is made on the spot. */
export async function workflowBundle(): Promise<WorkflowBundleOption> {
  const codePath = join(__dirname, BUNDLE_NAME)
  return existsSync(codePath) ? { codePath } : bundleWorkflowCode({ workflowsPath: workflowsPath() })
}

function workflowsPath(): string {
  return require.resolve('../workflows')
}
