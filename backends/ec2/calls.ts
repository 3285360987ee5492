import type { CallContext } from '../backend'
import { runVerb } from '../calls'
import { ec2Error } from './errors'

export function verb<T>(ctx: CallContext, task: () => Promise<T>): Promise<T> {
  return runVerb(ctx, task, ec2Error)
}
