/** Runs in the sandbox of a replayed workflow and hands out what a replay itself does not compare. */
import { proxySinks, type Sinks, type WorkflowInterceptorsFactory } from '@temporalio/workflow'
import { getActivator } from '@temporalio/workflow/lib/global-attributes'

interface CaptureSinks extends Sinks {
  capture: { activation(commands: unknown[], views: string): void }
}

/** As JSON: the page in the Web UI, the descriptions of all handlers, and the answers to all queries. */
function views(): string {
  const { currentDetails, queryHandlers, signalHandlers, updateHandlers } = getActivator()
  const queries = [...queryHandlers].filter(([name]) => !name.startsWith('__'))
  const handlers = [...queries, ...signalHandlers, ...updateHandlers]
  return JSON.stringify({
    page: currentDetails,
    handlers: Object.fromEntries(handlers.map(([name, { description }]) => [name, description])),
    ...Object.fromEntries(queries.map(([name, { handler }]) => [name, handler()])),
  })
}

export const interceptors: WorkflowInterceptorsFactory = () => {
  const { capture } = proxySinks<CaptureSinks>()
  return {
    internals: [
      {
        concludeActivation(input, next) {
          const output = next(input)
          capture.activation([...output.commands], views())
          return output
        },
      },
    ],
  }
}
