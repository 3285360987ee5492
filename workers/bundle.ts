import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  bundleWorkflowCode,
  type BundleOptions,
  DefaultLogger,
  type WorkflowBundleOption,
} from '@temporalio/worker'

const BUNDLE_NAME = 'workflow-bundle.js'

/** Bundles the workflows into one file, as the build does; fails if it contains a forbidden module. */
export async function buildWorkflowBundle(outFile: string): Promise<void> {
  const { code } = await bundleWorkflowCode(source())
  await writeFile(outFile, code)
}

/** The bundle from the build; without one, it is built from the sources. */
export async function workflowBundle(): Promise<WorkflowBundleOption> {
  const codePath = join(__dirname, BUNDLE_NAME)
  return existsSync(codePath) ? { codePath } : bundleWorkflowCode(source())
}

/** The same workflows, which refuse input that was not signed with the deployment's key. */
export async function sealedBundle(bundle: WorkflowBundleOption): Promise<WorkflowBundleOption> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8')
  return { code: `globalThis.crucibleRequiresSeals = true;${code}` }
}

function source(): BundleOptions {
  return {
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: [require.resolve('../workflows/interceptors')],
    logger: new DefaultLogger('WARN'),
  }
}
