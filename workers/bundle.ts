import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundleWorkflowCode, DefaultLogger, type WorkflowBundleOption } from '@temporalio/worker'

/** Bundles the workflows into one file, as the build does; fails if it contains a forbidden module. */
export async function buildWorkflowBundle(outFile: string): Promise<void> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: require.resolve('../workflows'),
    workflowInterceptorModules: [require.resolve('../workflows/interceptors')],
    logger: new DefaultLogger('WARN'),
  })
  await writeFile(outFile, code)
}

/** The bundle that the build has put next to this file. */
export function workflowBundle(): WorkflowBundleOption {
  return { codePath: join(__dirname, 'workflow-bundle.js') }
}

/**
 * Returns the same workflows in a form that refuses input without the deployment's signature, and leaves the workflows of other
 * deployments to their workers.
 */
export async function sealedBundle(
  bundle: WorkflowBundleOption,
  deployment: string | undefined,
): Promise<WorkflowBundleOption> {
  const code = 'code' in bundle ? bundle.code : await readFile(bundle.codePath, 'utf8')
  const own = JSON.stringify(deployment ?? null)
  return { code: `globalThis.crucibleRequiresSeals = true;globalThis.crucibleDeployment = ${own};${code}` }
}
