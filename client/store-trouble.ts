import { CODES, isCoded } from '../core/errors'
import { readDeployment } from '../storage/deployment'
import { checkKey } from '../storage/deployment-key'
import { unmarkedStore } from '../storage/mark'
import type { Context } from './context'
import { toCrucibleError, type CrucibleError } from './errors'

/**
 * Why the place of the store is not this deployment's store: its folder is missing, it is empty, or it belongs to another deployment. A
 * reader asks this before it reports that something does not exist. `undefined` if the store is the deployment's.
 */
export async function storeTrouble({ store, config }: Context): Promise<CrucibleError | undefined> {
  try {
    if ((await readDeployment(store)) === undefined) throw unmarkedStore(store.url)
    await checkKey(store, config.home.secretKeyFile)
    return undefined
  } catch (error) {
    return toCrucibleError(error)
  }
}

/** Throws `storeTrouble`: a reader that found nothing asks before it reports that nothing exists. */
export async function checkStore(context: Context): Promise<void> {
  const trouble = await storeTrouble(context)
  if (trouble !== undefined) throw trouble
}

/** Whether the place has no mark or does not exist, as that of a deployment that never ran. */
export function isUnused({ cause }: CrucibleError): boolean {
  return isCoded(cause, 'store') && (cause.code === CODES.noMark || cause.code === CODES.noRoot)
}
