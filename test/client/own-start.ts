/** The parts of a client by which it finds that this deployment's key started a workflow. */
export const OWN_START = {
  options: { namespace: 'default', loadedDataConverter: { payloadCodecs: [] } },
  workflowService: {
    getWorkflowExecutionHistory: async () => ({
      history: { events: [{ workflowExecutionStartedEventAttributes: { input: { payloads: [{}] } } }] },
    }),
  },
}
