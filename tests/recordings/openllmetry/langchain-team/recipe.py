"""A LangChain agent that asks an expert, another agent inside a tool, who looks things up; the question has a picture. OpenLLMetry's instrumentation."""

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
LangchainInstrumentor().instrument(tracer_provider=provider)


class Almanac(BaseRetriever):
    """Finds one page, whatever is asked."""

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Oslo has rain at 4 °C.", metadata={"page": 7})]


@tool
def look_up(query: str) -> str:
    """A page of the almanac."""
    return Almanac().invoke(query)[0].page_content


@tool
def convert(celsius: float) -> dict:
    """Degrees Celsius in Fahrenheit."""
    return {"fahrenheit": celsius * 9 / 5 + 32}


EXPERT = create_agent(ChatOpenAI(model="gpt-4o-mini"), [look_up, convert], system_prompt="You know the weather.", name="expert")


@tool
def ask_expert(question: str) -> str:
    """Asks who knows the weather."""
    return EXPERT.invoke({"messages": [{"role": "user", "content": question}]})["messages"][-1].text


def main() -> None:
    lead = create_agent(ChatOpenAI(model="gpt-4o"), [ask_expert], system_prompt="You answer visitors.", name="lead")
    picture = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
    asked = {"messages": [HumanMessage([{"type": "text", "text": "What is the weather in this city?"}, picture])]}
    lead.invoke(asked, {"configurable": {"thread_id": "thread-1"}, "metadata": {"thread_id": "thread-1"}})


main()
provider.shutdown()
